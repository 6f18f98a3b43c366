"""Training runs beside the server, in processes of their own."""
