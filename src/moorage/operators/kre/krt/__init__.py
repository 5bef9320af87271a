"""What a `.krt` file is: the text in it, its rules, its graph, and the archive around it. Only reads."""
