"""Files as address spaces. Knows where files lie and how bytes get durable; knows no field of a message."""
