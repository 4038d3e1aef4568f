use super::*;

#[test]
fn a_bucket_ends_less_than_a_32nd_above_what_it_holds() {
    for us in (0..100_000).chain((17..40).map(|bit| (1 << bit) + 12_345)) {
        let end = end_of(bucket_of(us));
        assert!(end >= us && (end - us) * STEPS <= us, "{us} is in a bucket that ends at {end}");
    }
}
