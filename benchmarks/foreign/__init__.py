"""Films of elastic bodies whose motion another simulator (NGSolve) computes."""
