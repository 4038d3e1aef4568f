use super::*;

const OPS: [CompareOp; 6] =
    [CompareOp::Eq, CompareOp::NotEq, CompareOp::Lt, CompareOp::LtEq, CompareOp::Gt, CompareOp::GtEq];
const VALUES: [i128; 9] = [i128::MIN, i128::MIN + 1, -7, -1, 0, 1, 7, i128::MAX - 1, i128::MAX];

fn holds(op: CompareOp, a: i128, b: i128) -> bool {
    match op {
        CompareOp::Eq => a == b,
        CompareOp::NotEq => a != b,
        CompareOp::Lt => a < b,
        CompareOp::LtEq => a <= b,
        CompareOp::Gt => a > b,
        CompareOp::GtEq => a >= b,
    }
}

#[test]
fn a_span_holds_what_compares_so() {
    for (op, constant, value) in OPS.iter().flat_map(|op| pairs().map(move |(a, b)| (*op, a, b))) {
        assert_eq!(
            Span::compared(op, constant).contains(value),
            holds(op, value, constant),
            "{value} {op:?} {constant}"
        );
    }
}

#[test]
fn both_of_two_spans() {
    for (a, b) in OPS.iter().flat_map(|a| OPS.iter().map(move |b| (*a, *b))) {
        for (left, right) in pairs() {
            let Some(both) = Span::compared(a, left).and(Span::compared(b, right)) else {
                assert!(a == CompareOp::NotEq || b == CompareOp::NotEq);
                continue;
            };
            for value in VALUES {
                let expected = holds(a, value, left) && holds(b, value, right);
                assert_eq!(both.contains(value), expected, "{value} {a:?} {left} and {b:?} {right}");
            }
        }
    }
}

#[test]
fn verdicts_are_those_of_all_values_between_the_bounds() {
    let spans =
        (-3..4).flat_map(|low| (-3..4).flat_map(move |high| [true, false].map(|inside| Span { low, high, inside })));
    for span in spans {
        for (min, max) in (-2..3).flat_map(|min| (min..3).map(move |max| (min, max))) {
            let passing = (min..=max).filter(|value| span.contains(*value)).count() as i128;
            match span.verdict((min, max)) {
                Verdict::All => assert_eq!(passing, max - min + 1, "{span:?} {min} {max}"),
                Verdict::None => assert_eq!(passing, 0, "{span:?} {min} {max}"),
                Verdict::Depends => {}
            }
            // What bounds can tell they do tell.
            if span.inside && (passing == 0 || passing == max - min + 1) {
                assert_ne!(span.verdict((min, max)), Verdict::Depends, "{span:?} {min} {max}");
            }
        }
    }
}

fn pairs() -> impl Iterator<Item = (i128, i128)> {
    VALUES.iter().flat_map(|a| VALUES.iter().map(move |b| (*a, *b)))
}
