"""A batch on its way through the writer, and its form as records. Imports no other package of the writer."""
