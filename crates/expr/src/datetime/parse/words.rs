//! The words of dates and times (PostgreSQL manual, tables B.1 and B.2, and 8.5.1.4).

/// Words are told apart by their first letters.
pub(crate) const SIGNIFICANT: usize = 10;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Special {
    Now,
    Today,
    Tomorrow,
    Yesterday,
    Epoch,
    Infinity,
    NegInfinity,
    AllBalls,
}

/// What the number after it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Label {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Julian,
    /// `T`: a time follows.
    Time,
    /// A unit that no number can have here.
    Other,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Word {
    Special(Special),
    /// 1 to 12.
    Month(u32),
    Weekday,
    Afternoon(bool),
    BeforeChrist(bool),
    Label(Label),
    Summer,
    Filler,
}

pub(super) fn word(text: &str) -> Option<Word> {
    let text = text.get(..SIGNIFICANT).unwrap_or(text);
    Some(match text {
        "now" => Word::Special(Special::Now),
        "today" => Word::Special(Special::Today),
        "tomorrow" => Word::Special(Special::Tomorrow),
        "yesterday" => Word::Special(Special::Yesterday),
        "epoch" => Word::Special(Special::Epoch),
        "infinity" => Word::Special(Special::Infinity),
        "-infinity" => Word::Special(Special::NegInfinity),
        "allballs" => Word::Special(Special::AllBalls),
        "am" => Word::Afternoon(false),
        "pm" => Word::Afternoon(true),
        "ad" => Word::BeforeChrist(false),
        "bc" => Word::BeforeChrist(true),
        "at" | "on" => Word::Filler,
        "dst" => Word::Summer,
        "d" => Word::Label(Label::Day),
        "h" => Word::Label(Label::Hour),
        "m" => Word::Label(Label::Month),
        "mm" => Word::Label(Label::Minute),
        "s" => Word::Label(Label::Second),
        "y" => Word::Label(Label::Year),
        "j" | "jd" | "julian" => Word::Label(Label::Julian),
        "t" => Word::Label(Label::Time),
        "dow" | "doy" | "isodow" | "isoyear" => Word::Label(Label::Other),
        text => match super::month_number(text) {
            Some(month) => Word::Month(month),
            None if super::is_weekday(text) => Word::Weekday,
            None => return None,
        },
    })
}
