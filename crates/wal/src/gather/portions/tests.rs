use super::*;

const EVERY: Duration = Portions::LOOK_EVERY;

/// Looks one after the other; `rates` are the commits that each portion gets done in a look.
struct Watch {
    portions: Portions,
    now: Duration,
    times: ProcessorTimes,
    idle: f64,
    rates: [usize; 3],
    crowd: usize,
}

impl Watch {
    fn new(idle: f64, rates: [usize; 3]) -> Watch {
        let times = ProcessorTimes { idle: 300, all: 1000 };
        let mut watch =
            Watch { portions: Portions::default(), now: Duration::from_secs(50), times, idle, rates, crowd: 16 };
        watch.portions.look(watch.now, 0, 16, || Some(times));
        watch
    }

    fn looks(&mut self, looks: u32) -> &mut Watch {
        for _ in 0..looks {
            let rate = self.rates[self.portions.portion().0 as usize];
            self.times.all += 1000;
            self.times.idle += (1000.0 * self.idle) as u64;
            // Of one look, in two syncs.
            let times = self.times;
            self.portions.look(self.now + EVERY / 2, rate / 2, self.crowd, || panic!("asked too early"));
            self.now += EVERY;
            self.portions.look(self.now, rate - rate / 2, self.crowd, || Some(times));
        }
        self
    }

    fn portion(&self) -> Portion {
        self.portions.portion().0
    }

    /// After a trial.
    fn choice(&mut self) -> Portion {
        self.looks(Portions::IDLE_LOOKS);
        assert!(matches!(self.portions.state, State::Trial { looks: 0, .. }), "{:?}", self.portions.state);
        self.looks(Portions::TRIAL_LOOKS);
        assert!(matches!(self.portions.state, State::Chosen { .. }), "{:?}", self.portions.state);
        self.portion()
    }
}

#[test]
fn what_gets_most_done_is_chosen() {
    assert_eq!(Watch::new(0.3, [3000, 3500, 3200]).choice(), Portion::Half);
    assert_eq!(Watch::new(0.3, [3000, 3500, 3800]).choice(), Portion::Nobody);
    assert_eq!(Watch::new(0.3, [3000, 2500, 2800]).choice(), Portion::All);
    assert_eq!(Watch::new(0.3, [3000, 3030, 3050]).choice(), Portion::All, "hardly more, for more syncs");
    assert_eq!(Watch::new(0.3, [3000, 3500, 3550]).choice(), Portion::Half);
}

#[test]
fn nothing_is_tried_where_processors_are_busy() {
    assert_eq!(Watch::new(0.1, [3000, 9000, 9000]).looks(100).portions.state, State::default());
    let mut few = Watch::new(0.5, [3000, 9000, 9000]);
    few.crowd = 2;
    assert_eq!(few.looks(100).portions.state, State::default(), "two are no crowd");
    // Idle at times.
    let mut watch = Watch::new(0.1, [3000, 9000, 9000]);
    for _ in 0..20 {
        watch.idle = 0.3;
        watch.looks(Portions::IDLE_LOOKS - 1).idle = 0.1;
        assert_eq!(watch.looks(1).portions.state, State::default());
    }
}

#[test]
fn a_choice_ends() {
    let mut watch = Watch::new(0.3, [3000, 3500, 3200]);
    watch.choice();
    watch.looks(Portions::STAY - 1);
    assert_eq!(watch.portion(), Portion::Half);
    watch.looks(1);
    assert_eq!(watch.portions.state, State::default());
    // Others have come.
    watch.rates = [3000, 3500, 4200];
    assert_eq!(watch.choice(), Portion::Nobody);
    // There is something else to do.
    watch.idle = 0.01;
    watch.looks(Portions::STAY);
    assert_eq!(watch.looks(100).portions.state, State::default());
}

#[test]
fn all_stay_for_longer_each_time() {
    let mut watch = Watch::new(0.3, [3000, 2500, 2800]);
    let mut stays = Vec::new();
    for _ in 0..6 {
        assert_eq!(watch.choice(), Portion::All);
        let mut looks = 0;
        while matches!(watch.portions.state, State::Chosen { .. }) {
            watch.looks(1);
            looks += 1;
        }
        stays.push(looks);
    }
    assert_eq!(stays, [50, 100, 200, 400, 800, 800]);
    watch.rates = [3000, 4000, 2800];
    watch.choice();
    watch.looks(Portions::STAY).rates = [3000, 2500, 2800];
    watch.choice();
    watch.looks(Portions::STAY);
    assert_eq!(watch.portions.state, State::default(), "from the beginning");
}

#[test]
fn a_pause_ends_what_was() {
    let mut watch = Watch::new(0.3, [3000, 3500, 3200]);
    watch.looks(Portions::IDLE_LOOKS + 4);
    assert_eq!(watch.portion(), Portion::Half);
    watch.now += Duration::from_secs(1);
    let times = ProcessorTimes { idle: watch.times.idle + 4000, all: watch.times.all + 4000 };
    assert!(watch.portions.look(watch.now, 7, 16, || Some(times)), "another portion");
    assert_eq!((watch.portions.state, watch.portions.served), (State::default(), 0));
}

#[test]
fn all_where_nothing_is_known() {
    let mut portions = Portions::default();
    portions.look(EVERY, 1, 1, || panic!("asked for one alone"));
    portions.look(EVERY, 5, 16, || None);
    assert_eq!(portions.portion().0, Portion::All);
    portions.look(EVERY * 9, 5, 16, || panic!("asked in vain"));
}

#[test]
fn parts_of_crowds() {
    let parts = |portion| {
        let state = State::Chosen { half: 8, portion, looks: 9 };
        let portions = Portions { state, ..Portions::default() };
        [0, 1, 3, 9, 16, 40].map(|crowd| portions.part_of(crowd))
    };
    assert_eq!(parts(Portion::All), [0, 1, 3, 9, 16, 40]);
    // More may have come than were counted.
    assert_eq!(parts(Portion::Half), [0, 1, 3, 8, 8, 20]);
    assert_eq!(parts(Portion::Nobody), [0, 1, 1, 1, 1, 1]);
}
