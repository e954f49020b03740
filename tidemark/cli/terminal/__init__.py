"""Terminal output, confirmations, exit statuses and addresses for all verbs. Imports no other package here."""
