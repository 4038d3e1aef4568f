//! Lists of identifiers in settings and options.

/// Splits `a, "B c"`; unquoted names are folded to lower case. `None` if quotes do not match.
pub fn names_of(text: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut rest = text.trim();
    if rest.is_empty() {
        return Some(names);
    }
    loop {
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut name = String::new();
            let mut chars = quoted.char_indices().peekable();
            let end = loop {
                match chars.next()? {
                    (at, '"') => match chars.peek() {
                        Some((_, '"')) => {
                            name.push('"');
                            chars.next();
                        }
                        _ => break at + 1,
                    },
                    (_, c) => name.push(c),
                }
            };
            names.push(name);
            rest = quoted[end..].trim_start();
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            let name = rest[..end].trim();
            if name.is_empty() || name.contains(char::is_whitespace) {
                return None;
            }
            names.push(name.to_ascii_lowercase());
            rest = &rest[end..];
        }
        match rest.strip_prefix(',') {
            Some(more) => rest = more.trim_start(),
            None if rest.is_empty() => return Some(names),
            None => return None,
        }
    }
}
