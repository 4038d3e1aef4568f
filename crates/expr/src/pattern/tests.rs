use super::are::{self, Flags, compile};
use super::{LikePattern, Rest};
use proptest::prelude::*;

/// `LIKE` as the manual defines it, by brute force over characters.
fn reference(text: &[char], pattern: &[char]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ['%', rest @ ..] => (0..=text.len()).any(|taken| reference(&text[taken..], rest)),
        ['_', rest @ ..] => !text.is_empty() && reference(&text[1..], rest),
        ['\\', char, rest @ ..] | [char, rest @ ..] => text.first() == Some(char) && reference(&text[1..], rest),
    }
}

proptest! {
    #[test]
    fn like_agrees_with_its_definition(text in "[ab%é]{0,8}", pattern in r"(\\[%_a]|[ab%_é]){0,8}") {
        let (text_chars, pattern_chars): (Vec<char>, Vec<char>) = (text.chars().collect(), pattern.chars().collect());
        let expected = reference(&text_chars, &pattern_chars);
        let compiled = LikePattern::new(&pattern, Some('\\'), false);
        prop_assert_eq!(compiled.matches(&text).unwrap(), expected, "{:?} LIKE {:?}", text, pattern);
        if let Some((prefix, rest)) = compiled.prefix() {
            match rest {
                Rest::Nothing => prop_assert_eq!(text == prefix, expected),
                Rest::Anything => prop_assert_eq!(text.starts_with(&prefix), expected),
                Rest::Something | Rest::Failure => prop_assert!(!expected || text.starts_with(&prefix)),
            }
        }
    }

    #[test]
    fn plain_text_is_its_own_regular_expression(text in "[a-z0-9 _,;:<>=!@#%&~'\"/-]{0,12}") {
        let whole = format!("^{text}$");
        let advanced = compile(&whole, Flags::default()).unwrap().is_match(&text);
        let literal = Flags { literal: true, ..Flags::default() };
        let exact = compile(&text, literal).unwrap().is_match(&text);
        prop_assert!(advanced && exact);
    }
}

proptest! {
    #[test]
    fn a_match_is_the_same_with_its_groups_and_without(
        text in "[abé .]{0,10}",
        pattern in r"(\^?)(\([ab]{1,2}\|[abé.]+\)[*+?]?|[abé.][*+?]{0,2}|\\y|\\w){1,4}",
    ) {
        if let Ok(compiled) = compile(&pattern, Flags::default()) {
            for from in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
                let whole = compiled.find_at(&text, from).and_then(|groups| groups[0].clone());
                prop_assert_eq!(compiled.span_at(&text, from), whole, "{:?} in {:?} from {}", pattern, text, from);
            }
        }
    }
}

#[test]
fn of_the_matches_that_start_first_the_longest_or_shortest_is_taken() {
    let found = |pattern: &str, text: &str| {
        let compiled = compile(pattern, Flags::default()).unwrap();
        let groups = compiled.find_at(text, 0).expect("matches");
        groups.into_iter().map(|range| range.map(|range| text[range].to_string())).collect::<Vec<_>>()
    };
    let text = |part: &str| Some(part.to_string());
    assert_eq!(found("a|ab|abc", "xabc"), [text("abc")]);
    assert_eq!(found("(a?)(ab)?", "ab"), [text("ab"), text(""), text("ab")]);
    assert_eq!(found("Y*([0-9]{1,3})", "XY1234Z"), [text("Y123"), text("123")]);
    assert_eq!(found("Y*?([0-9]{1,3})", "XY1234Z"), [text("Y1"), text("1")]);
    // What stands behind a match counts, whether it is the first that was found or not.
    assert_eq!(found(r"é*?\yé?", "é"), [text("")]);
    assert_eq!(found(r"(é*?\yé?)", "é"), [text(""), text("")]);
    assert_eq!(found("(a$)?(a)?b*?", "ab"), [text("ab"), None, text("a")]);
    assert_eq!(found("(a$)?(a)?(b|bc)", "abc"), [text("abc"), None, text("a"), text("bc")]);
}

#[test]
fn what_takes_exponential_time_is_given_up() {
    let pattern = r"^(a*)(a*)(a*)(a*)\1\2\3\4x$";
    let matches = |count: usize| {
        let text = "a".repeat(count) + "x";
        are::cached(pattern, Flags::default(), |compiled| compiled.is_match(&text)).map_err(|error| error.sqlstate)
    };
    assert_eq!(matches(16), Ok(true));
    assert_eq!(matches(15), Ok(false));
    assert_eq!(matches(201), Err("2201B"));
    // The one that follows is searched again from the start.
    assert_eq!(matches(16), Ok(true));
}

#[test]
fn a_pattern_that_ends_in_the_escape_fails_where_it_is_reached() {
    for (text, pattern, fails) in [
        ("abc", "x\\", false),
        ("xbc", "x\\", true),
        ("x", "x\\", false),
        ("", "\\", false),
        ("", "%\\", false),
        ("a", "%\\", true),
        ("a", "%_\\", true),
        ("a", "%__\\", false),
        ("a", "_\\", false),
        ("axb", "%x\\", true),
        ("ax", "%x\\", false),
    ] {
        let compiled = LikePattern::new(pattern, Some('\\'), false);
        assert!(compiled.breaks());
        assert_eq!(compiled.matches(text).ok(), (!fails).then_some(false), "{text:?} LIKE {pattern:?}");
        let bytes = crate::functions::strings::bytes::like(text.as_bytes(), pattern.as_bytes());
        assert_eq!(bytes.ok(), (!fails).then_some(false), "bytes of {text:?} LIKE {pattern:?}");
    }
}
