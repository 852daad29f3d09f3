"""What a person sees at the terminal."""
