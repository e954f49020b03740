"""The load of `tidemark bench`, and its measurements. Imports only `terminal` of the command's packages."""
