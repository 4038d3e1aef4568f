//! Text of a date, time or interval, cut into fields by their looks (PostgreSQL manual, B.1): digits with colons are
//! a clock, digits with separators a date, a sign and digits a zone, letters a word.

/// What a field looks like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Look {
    Number,
    Date,
    Clock,
    /// A sign and digits: a zone, or a signed number of an interval.
    Signed,
    Word,
    /// A sign and letters, as in `-infinity`.
    SignedWord,
}

/// One field, its letters small.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Field {
    pub look: Look,
    pub text: String,
}

const FIELDS_MAX: usize = 25;

struct Cursor<'a> {
    rest: &'a [u8],
    taken: String,
}

impl Cursor<'_> {
    fn peek(&self) -> u8 {
        self.rest.first().copied().unwrap_or(0)
    }

    fn skip(&mut self) {
        self.rest = self.rest.get(1..).unwrap_or_default();
    }

    fn take(&mut self) {
        self.taken.push(char::from(self.peek().to_ascii_lowercase()));
        self.skip();
    }

    fn take_while(&mut self, fits: impl Fn(u8) -> bool) {
        while !self.rest.is_empty() && fits(self.peek()) {
            self.take();
        }
    }

    fn digits(&mut self) {
        self.take_while(|byte| byte.is_ascii_digit());
    }
}

/// The fields of a text; `None` if something in it can be no field. `is_keyword` says which words are more than the
/// beginning of a zone's name.
pub(crate) fn split(text: &str, is_keyword: impl Fn(&str) -> bool) -> Option<Vec<Field>> {
    let mut cursor = Cursor { rest: text.as_bytes(), taken: String::new() };
    let mut fields = Vec::new();
    while !cursor.rest.is_empty() {
        let first = cursor.peek();
        if is_space(first) {
            cursor.skip();
            continue;
        }
        let look = match first {
            b'0'..=b'9' => digits_field(&mut cursor),
            b'.' => {
                cursor.take();
                cursor.digits();
                Look::Number
            }
            b'a'..=b'z' | b'A'..=b'Z' => word_field(&mut cursor, &is_keyword),
            b'+' | b'-' => signed_field(&mut cursor)?,
            other if other.is_ascii_punctuation() => {
                cursor.skip();
                continue;
            }
            _ => return None,
        };
        if fields.len() == FIELDS_MAX {
            return None;
        }
        fields.push(Field { look, text: std::mem::take(&mut cursor.taken) });
    }
    Some(fields)
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

fn digits_field(cursor: &mut Cursor<'_>) -> Look {
    cursor.digits();
    let separator = cursor.peek();
    match separator {
        b':' => {
            cursor.take_while(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.'));
            Look::Clock
        }
        b'-' | b'/' | b'.' => {
            cursor.take();
            if !cursor.peek().is_ascii_digit() {
                cursor.take_while(|byte| byte.is_ascii_alphanumeric() || byte == separator);
                return Look::Date;
            }
            cursor.digits();
            if cursor.peek() == separator {
                cursor.take_while(|byte| byte.is_ascii_digit() || byte == separator);
                return Look::Date;
            }
            if separator == b'.' { Look::Number } else { Look::Date }
        }
        _ => Look::Number,
    }
}

fn word_field(cursor: &mut Cursor<'_>, is_keyword: &impl Fn(&str) -> bool) -> Look {
    cursor.take_while(|byte| byte.is_ascii_alphabetic());
    let goes_on = match cursor.peek() {
        b'-' | b'/' | b'.' => true,
        b'+' | b'0'..=b'9' => !is_keyword(&cursor.taken),
        _ => false,
    };
    if !goes_on {
        return Look::Word;
    }
    cursor.take();
    cursor.take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'/' | b'_' | b'.' | b':'));
    Look::Date
}

fn signed_field(cursor: &mut Cursor<'_>) -> Option<Look> {
    cursor.take();
    while is_space(cursor.peek()) {
        cursor.skip();
    }
    if cursor.peek().is_ascii_digit() {
        cursor.take_while(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.' | b'-'));
        return Some(Look::Signed);
    }
    if cursor.peek().is_ascii_alphabetic() {
        cursor.take_while(|byte| byte.is_ascii_alphabetic());
        return Some(Look::SignedWord);
    }
    None
}
