// Benchmarks of sleeps (criterion 0.8): each iteration takes SLEEP_US microseconds, or half of that.
use criterion::{criterion_group, criterion_main, Criterion};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

thread_local! { static TRUTH: RefCell<BTreeMap<String, f64>> = RefCell::default(); }

fn sleep(criterion: &mut Criterion, name: &str, share: f64) {
    let us: f64 = std::env::var("SLEEP_US").unwrap().parse().unwrap();
    let each = Duration::from_secs_f64(us * share / 1e6);
    let (mut passed, mut iterations) = (Duration::ZERO, 0);
    criterion.bench_function(name, |bencher| {
        bencher.iter_custom(|times| {
            let began = Instant::now();
            (0..times).for_each(|_| std::thread::sleep(each));
            passed += began.elapsed();
            iterations += times;
            began.elapsed()
        })
    });
    TRUTH.with_borrow_mut(|truth| truth.insert(name.to_string(), passed.as_secs_f64() / iterations as f64));
}

fn sleeps(criterion: &mut Criterion) {
    sleep(criterion, "whole", 1.0);
    sleep(criterion, "half, with a name that has a line of its own", 0.5);
    let figures: Vec<_> = TRUTH.with_borrow(|truth| truth.iter().map(|(name, s)| format!("{name:?}: {s}")).collect());
    if let Ok(path) = std::env::var("RECORDING_TRUTH") {
        std::fs::write(path, format!("{{\"figures\": {{{}}}}}", figures.join(", "))).unwrap();
    }
}

criterion_group! {
    name = group;
    config = Criterion::default().measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_millis(300)).sample_size(20);
    targets = sleeps
}
criterion_main!(group);
