// SPDX-License-Identifier: GPL-2.0
/*
 * Text for terminals and shells. Names come from other hosts, and may contain control characters
 * or invalid UTF-8. Text in the model, and text from the kernel's log, is cleaned.
 */
#include <string.h>

#include "rnbd.h"

/* Get the length of a character from its first byte; 0 if invalid. @least: lowest valid code */
static size_t sequence(unsigned char first, unsigned int *code, unsigned int *least)
{
	static const struct {
		unsigned char mask, lead;
		unsigned int least;
	} kinds[] = {
		{ 0x80, 0x00, 0 }, { 0xe0, 0xc0, 0x80 }, { 0xf0, 0xe0, 0x800 },
		{ 0xf8, 0xf0, 0x10000 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		if ((first & kinds[i].mask) == kinds[i].lead) {
			*code = first & ~kinds[i].mask;
			*least = kinds[i].least;
			return i + 1;
		}
	}
	return 0;
}

/* Decode the UTF-8 character at the beginning. Returns its length, 0 if invalid. */
static size_t decode(const char *text, unsigned int *code)
{
	unsigned int least = 0;
	size_t n = sequence(*text, code, &least), i;

	if (!n)
		return 0;
	for (i = 1; i < n; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		*code = *code << 6 | (text[i] & 0x3f);
	}
	if (*code < least || *code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000))
		return 0;
	return n;
}

static bool is_control(unsigned int code)
{
	return code < ' ' || (code >= 0x7f && code < 0xa0);
}

/* Replace tabs by blanks; other control characters, and invalid bytes, by question marks. */
char *text_clean(char *text)
{
	char *from = text, *to = text;
	unsigned int code;
	size_t n;

	while (*from) {
		n = decode(from, &code);
		if (n && !is_control(code)) {
			memmove(to, from, n);
			to += n;
		} else {
			*to++ = *from == '\t' ? ' ' : '?';
		}
		from += n ? n : 1;
	}
	*to = 0;
	return text;
}

static bool begins_character(char c)
{
	return (c & 0xc0) != 0x80;
}

/* Count the columns of clean text. Wide characters count as one column. */
size_t text_columns(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += begins_character(*text);
	return n;
}

/* Copy clean text, up to the last character that fits. */
void text_copy(char *to, size_t room, const char *text)
{
	size_t n = strnlen(text, room - 1);

	while (n && !begins_character(text[n]))
		n--;
	memcpy(to, text, n);
	to[n] = 0;
}

/* Cut clean text after that many columns. */
void text_clip(char *text, size_t columns)
{
	for (; *text; text++) {
		if (!begins_character(*text))
			continue;
		if (!columns--) {
			*text = 0;
			return;
		}
	}
}

/* Get the last columns of clean text. */
const char *text_end(const char *text, size_t columns)
{
	size_t skip = text_columns(text);

	for (skip = skip > columns ? skip - columns : 0; skip; skip--)
		while (!begins_character(*++text))
			;
	return text;
}

/* Quote any text as a word of a shell, without control characters. */
void print_quoted(FILE *to, const char *text)
{
	unsigned int code;
	size_t n;

	fputc('\'', to);
	for (; *text; text += n) {
		n = decode(text, &code);
		if (!n || is_control(code)) {
			fprintf(to, "'$'\\%03o''", (unsigned char)*text);
			n = 1;
		} else if (*text == '\'') {
			fputs("'\\''", to);
		} else {
			fwrite(text, 1, n, to);
		}
	}
	fputc('\'', to);
}

/* Check for printable ASCII without blanks, as map_device requires in its words. */
bool is_word(const char *text)
{
	if (!*text)
		return false;
	for (; *text; text++)
		if (*text <= ' ' || *text >= 0x7f)
			return false;
	return true;
}

/* Check for a part among parts separated by one @separator each. */
bool has_part(const char *text, const char *part, char separator)
{
	const char separators[] = { separator, 0 };
	size_t n = strlen(part), m;

	for (; *text; text += m + (text[m] == separator)) {
		m = strcspn(text, separators);
		if (n == m && !strncmp(text, part, n))
			return true;
	}
	return false;
}

/* Check for a word among words separated by single blanks. */
bool has_word(const char *words, const char *word)
{
	return has_part(words, word, ' ');
}
