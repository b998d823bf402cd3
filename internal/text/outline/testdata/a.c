#include <stdio.h>
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* A node. */
typedef struct node {
	struct node *next;
} node_t;

struct point { int x, y; };
enum colour { RED, GREEN };
static const int table[] = { 1, 2 };
int proto(int a);

/* Adds. */
static int
add(int a, char c)
{
	if (c == '{') return a;
	return a;
}

#ifdef WIN
int open_file(const char *name) {
#else
int open_file(char *name) {
#endif
	return 0;
}

int old(a, b)
	int a;
	char *b;
{
	return 0;
}

struct entry {
	LIST_ENTRY(entry) next;
	int used;
	void (*run)(int a);
};
struct after {
	int a;
};

HASH(map, entry)
HASH_BODY(map, entry)
static int find(struct entry *e)
{
	return 0;
}

/* Opens it. */
EXPORT struct entry *
entry_new(const char *name, int n);
int entry_size(struct entry *e) __attribute__((pure));
void entry_warn(const char *format, ...) CHECK(1, 2) NORETURN;
void entry_close(struct entry *e);
