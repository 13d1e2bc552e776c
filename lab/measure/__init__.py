"""What single functions of libraries spend their time on, told by the machine: labels that nobody had to read."""
