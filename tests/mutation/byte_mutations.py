"""Mutations that know nothing of a format, and those that know only protobuf's wire format or words of text."""
import re
import struct

ODD_NUMBERS = [0, 1, -1, 2, 3, 7, 63, 64, 65, 127, 128, 255, 1 << 15, 1 << 16, (1 << 31) - 1, 1 << 31, -(1 << 31),
               1 << 32, 1 << 40, 1 << 61, (1 << 62) + 1, (1 << 63) - 1, -(1 << 63)]
ODD_WORDS = ["", "-1", "nan", "-inf", "0x7fc00001", "1e400", "_", "%", "@", "9" * 30, "\x00", "é", '"', "f8e4m3fn",
             "i4", "bool", "-0"]


# ---- bytes

def bytes_mutant(data, random, donor):
    out = bytearray(data)
    for _ in range(random.choice([1, 1, 2, 4, 8])):
        at, length = random.randrange(len(out) + 1), random.choice([1, 1, 2, 4, 8, 32])
        way = random.randrange(7)
        if way == 0 and out:
            out[at % len(out)] ^= 1 << random.randrange(8)
        elif way == 1 and out:
            out[at % len(out)] = random.choice([0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)])
        elif way == 2:
            del out[at:at + length]
        elif way == 3:
            out[at:at] = random.randbytes(length)
        elif way == 4:
            out[at:at] = out[at:at + length]
        elif way == 5 and donor:
            start = random.randrange(len(donor))
            out[at:at + length] = donor[start:start + random.choice([4, 16, 64])]
        elif way == 6 and random.random() < 0.3:
            del out[at:]
    return bytes(out)


# ---- protobuf without a schema: a message is a list of [field, wire type, payload], payloads that parse are messages

def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at, value, shift = at + 1, value | (byte & 0x7F) << shift, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise ValueError


def parse(data, depth=0):
    fields, at = [], 0
    while at < len(data):
        key, at = read_varint(data, at)
        wire = key & 7
        if key >> 3 == 0 or wire not in (0, 1, 2, 5):
            raise ValueError
        if wire == 0:
            payload, at = read_varint(data, at)
        else:
            length = {1: 8, 5: 4}.get(wire)
            if length is None:
                length, at = read_varint(data, at)
            payload, at = data[at:at + length], at + length
            if at > len(data):
                raise ValueError
            if wire == 2 and depth < 12:
                try:
                    payload = parse(payload, depth + 1) or payload
                except (ValueError, IndexError):
                    pass
        fields.append([key >> 3, wire, payload])
    return fields


def serialize(fields):
    out = []
    for number, wire, payload in fields:
        out.append(varint(number << 3 | wire))
        if wire == 0:
            out.append(varint(payload))
        else:
            body = serialize(payload) if isinstance(payload, list) else payload
            out += [varint(len(body)), body] if wire == 2 else [body]
    return b"".join(out)


def messages(fields):
    yield fields
    for _, _, payload in fields:
        if isinstance(payload, list):
            yield from messages(payload)


def change_payload(field, random):
    if field[1] == 0:
        field[2] = random.choice([random.choice(ODD_NUMBERS), field[2] + 1, field[2] - 1, random.randrange(30)])
    elif isinstance(field[2], bytes):
        length = len(field[2])
        field[2] = random.choice([b"", field[2] + b"\0", field[2][:-1], random.randbytes(length), b"\xff" * length,
                                  struct.pack("<f", float("nan")) * (length // 4) + b"\0" * (length % 4)])
        if field[1] != 2:
            field[2] = (field[2] + bytes(8))[:length]


def wire_mutant(data, random, donor):
    try:
        fields = parse(data)
        other = parse(donor) if donor else []
    except (ValueError, IndexError):
        return bytes_mutant(data, random, donor)
    for _ in range(random.choice([1, 1, 2, 3])):
        message = random.choice(list(messages(fields)))
        if not message:
            continue
        at, way = random.randrange(len(message)), random.randrange(7)
        if way == 0:
            del message[at]
        elif way == 1:
            message.insert(random.randrange(len(message) + 1), list(message[at]))
        elif way == 2:
            message[at][0] = random.choice([message[at][0] + 1, random.randrange(1, 31), 1 << 28])
        elif way == 3:
            random.shuffle(message)
        elif way == 4 and other:
            message.insert(at, list(random.choice(random.choice(list(messages(other))) or message)))
        else:
            change_payload(message[at], random)
    return serialize(fields)


# ---- text: words of the same kind take each other's place

WORD = re.compile(r'"(?:[^"\\\n]|\\.)*"|[@%]?[A-Za-z_][\w.$/-]*|-?\d[\w.+-]*|\s+|.', re.S)


def kind_of(word):
    if word[0] in "@%":
        return word[0] + ("w" if len(word) > 1 else "")
    return "s" if word[0] == '"' else "n" if word[0].isdigit() or word[0] == "-" else "W" if word[0].isupper() else \
        "w" if word[0].isalpha() else " " if word.isspace() else "."


def words_of(text):
    return WORD.findall(text)


def change_word(words, random, others):
    places = [i for i, word in enumerate(words) if kind_of(word) not in " ." or random.random() < 0.1]
    if not places:
        return
    at = random.choice(places)
    kind, way = kind_of(words[at]), random.randrange(12)
    if way == 0:
        words[at] = ""
    elif way == 1:
        words[at] += words[at]
    elif way == 2:
        words[at] = random.choice(ODD_WORDS)
    elif kind == "n" and way < 8:
        words[at] = str(random.choice(ODD_NUMBERS) if way < 5 else random.randrange(20))
    else:
        same = [word for word in (words if way < 9 else others) if word and kind_of(word) == kind]
        words[at] = random.choice(same or words)


def change_lines(lines, random, others):
    if not lines:
        return
    at, to, way = random.randrange(len(lines)), random.randrange(len(lines)), random.randrange(4)
    if way == 0:
        del lines[at]
    elif way == 1:
        lines.insert(to, lines[at])
    elif way == 2:
        lines[at], lines[to] = lines[to], lines[at]
    elif others:
        lines.insert(at, random.choice(others))


def text_mutant(data, random, donor):
    if random.random() < 0.1:
        return bytes_mutant(data, random, donor)
    text, other = data.decode("utf-8", "surrogateescape"), donor.decode("utf-8", "replace")
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        if random.random() < 0.7:
            words = words_of(text)
            change_word(words, random, words_of(other))
            text = "".join(words)
        else:
            lines = text.splitlines(keepends=True)
            change_lines(lines, random, other.splitlines(keepends=True))
            text = "".join(lines)
    return text.encode("utf-8", "surrogateescape")
