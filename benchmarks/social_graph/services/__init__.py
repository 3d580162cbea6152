"""The services: those in C++ (`CMakeLists.txt`), and those in Python."""
