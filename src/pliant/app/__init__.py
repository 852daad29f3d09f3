"""What talks to a person: command line, scene files, run directories, pictures."""
