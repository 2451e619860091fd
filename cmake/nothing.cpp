// A program of no code of its own: it links if the folders given to it need no others.
int main() { return 0; }
