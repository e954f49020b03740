"""Messages and positions of queues, as several verbs read and print them."""
