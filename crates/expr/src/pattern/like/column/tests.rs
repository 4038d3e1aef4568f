use super::*;
use proptest::prelude::*;

fn check(pattern: &str, texts: &StringViewArray) {
    let compiled = LikePattern::new(pattern, Some('\\'), false);
    let found = compiled.matching(texts);
    for (row, text) in texts.iter().enumerate().filter_map(|(row, text)| Some((row, text?))) {
        assert_eq!(found.value(row), compiled.matches(text).unwrap(), "{text:?} like {pattern:?}");
    }
}

#[test]
fn hits_across_the_ends_of_texts_are_no_matches() {
    let texts: StringViewArray = [
        "needles and pins ne",
        "edle in a haystack",
        "short",
        "needle",
        "",
        "a needle in the middle of it",
        "the last nee",
    ]
    .iter()
    .map(|text| Some(*text))
    .collect();
    for pattern in
        ["%needle%", "%needle%haystack%", "%e%e%e%", "%needle", "needle%", "%%", "%\\%%", "_eedle%", "%ee%l_"]
    {
        check(pattern, &texts);
        check(pattern, &texts.slice(1, 4));
    }
}

proptest! {
    #[test]
    fn columns_match_as_their_texts_do(
        texts in prop::collection::vec(prop::option::of("[abä]{0,30}"), 0..60),
        pattern in "[ab%_ä]{0,6}",
        from in 0usize..20,
    ) {
        let texts: StringViewArray = texts.iter().map(|text| text.as_deref()).collect();
        check(&pattern, &texts);
        check(&pattern, &texts.slice(from.min(texts.len()), texts.len().saturating_sub(from)));
    }
}
