"""Questions and their answers: what `import forerun` gives. One module a question; asking.py is how they are asked."""
