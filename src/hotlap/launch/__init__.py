"""Start the user's command, stand aside while it runs, and leave as it left."""
