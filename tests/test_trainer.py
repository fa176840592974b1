"""Trainer, workers, splits, hooks.

What has to hold:
* one worker is `solve` with its seed, bit for bit; several are that many runs of `solve` with the keys of the workers,
  folded in order; `train(a)` and `train(b)` are `train(a + b)`, bit for bit;
* a split is the sum of its windows, each iterate weighted by a product of its own, worked out here in plain numbers;
* the variance over seeds of a bag of W workers is about 1 / W of that of one (slow);
* callbacks are called once a window, Ctrl-C loses nothing.
"""

from __future__ import annotations

import functools
import inspect
import os
import signal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxcfr
from jaxcfr import errors, workers
from jaxcfr.regret import average as averages

SAMPLER = jaxcfr.external_sampling(batch=4)


def trainer(game, **settings):
    return jaxcfr.Trainer(game, **{"algorithm": SAMPLER, "seed": 5, "workers": 3, **settings})


def assert_same_bits(one, other):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(a, b)


def averaged(treeplex, total):
    """Sums of realization weights as probabilities, one information set after the other."""
    flat = np.array(treeplex.uniform)
    for first, stride, count in zip(
        *(np.asarray(x) for x in (treeplex.first, treeplex.stride, treeplex.num_actions)), strict=True
    ):
        row = total[first : first + stride * count : stride]
        if row.sum() > 0:
            flat[first : first + stride * count : stride] = row / row.sum()
    return flat


def test_the_defaults():
    parameters = inspect.signature(jaxcfr.Trainer).parameters
    found = {name: parameter.default for name, parameter in parameters.items() if name != "game_or_tree"}
    assert found == {
        "algorithm": jaxcfr.external_sampling(),
        "regret": jaxcfr.dcfr_plus(1.5, 4.0),
        "pruning": None,
        "variance_reduction": None,
        "chance_samples": 1,
        "seed": 0,
        "workers": None,
        "updates": "alternating",
        "locked": None,
    }


def test_one_worker_is_solve(kuhn):
    mine = trainer(kuhn, workers=1).train(7).train(20)
    state = jaxcfr.solve(kuhn.tree, jaxcfr.dcfr_plus(1.5, 4.0), 27, traversal=SAMPLER, seed=5)
    assert_same_bits(mine.strategy(), jaxcfr.average_strategy(kuhn.tree, state))
    assert_same_bits(mine.regret_table().regrets, [player.regrets.regret for player in state.players])
    full = jaxcfr.Trainer(kuhn, jaxcfr.full_tree(), jaxcfr.cfr_plus()).train(50)
    state = jaxcfr.solve(kuhn.tree, jaxcfr.cfr_plus(), 50)
    assert_same_bits(full.strategy(), jaxcfr.average_strategy(kuhn.tree, state))


def test_workers_are_runs_with_their_own_keys(kuhn):
    mine = trainer(kuhn).train(1).train(24).train(10)
    assert mine.iterations_done == 35
    states = [
        jaxcfr.solve(kuhn.tree, jaxcfr.dcfr_plus(1.5, 4.0), 35, traversal=SAMPLER, seed=workers.worker_key(5, worker))
        for worker in range(3)
    ]
    average = []
    for player, treeplex in enumerate(kuhn.tree.treeplexes):
        total = sum(np.asarray(averages.total(state.players[player].average, kuhn.tree.dtype)) for state in states)
        average.append(averaged(treeplex, total))
    for a, b in zip(mine.strategy(), average, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-13)
    for worker, state in enumerate(states):
        with pytest.warns(UserWarning, match=f"worker {worker} of 3"):
            table = mine.regret_table(worker)
        assert (table.worker, table.of_workers) == (worker, 3)
        for a, player in zip(table.regrets, state.players, strict=True):
            np.testing.assert_allclose(a, player.regrets.regret, atol=1e-12)
    assert_same_bits(mine.strategy(), trainer(kuhn).train(35).strategy())
    keys = np.array([jax.random.key_data(workers.worker_key(5, w)) for w in range(1000)])
    assert len(np.unique(keys, axis=0)) == 1000
    iterations = np.array([jax.random.key_data(jax.random.fold_in(jax.random.key(5), t)) for t in range(1, 200)])
    assert len(np.unique(np.concatenate([keys, iterations]), axis=0)) == 1199


@pytest.mark.parametrize(
    ("variant", "gamma", "before", "count", "total"),
    [
        (jaxcfr.dcfr_plus(1.5, 4.0), lambda t: 4.0, 0, 3, 23),
        (jaxcfr.hs_pcfr_plus(30, 50), lambda t: 30 - 5 * t / 50, 9, 4, 21),
        (jaxcfr.dcfr_plus(1.5, 4.0), lambda t: 4.0, 4, 5, 3),
    ],
    ids=["dcfr_plus", "hs_pcfr_plus", "fewer iterations than windows"],
)
def test_a_split_is_the_sum_of_its_windows(kuhn, variant, gamma, before, count, total):
    """Two workers first; each window once more by steps of `solve`, and every iterate weighted by a product."""
    tree = kuhn.tree
    mine = trainer(kuhn, regret=variant, workers=2)
    mine.train(before).train_split(total, count)
    assert mine.iterations_done == before + total
    end = before + total

    def weight(t):
        """Of iterate t, with that of the last one as the unit."""
        return np.prod([((s - 1) / s) ** gamma(s) for s in range(t + 1, end + 1)])

    sums = [np.zeros(treeplex.size) for treeplex in tree.treeplexes]

    def follow(state, steps, share):
        for _ in range(steps):
            played = [np.asarray(player.weights[:-1]) for player in state.players]
            state = jaxcfr.solve(tree, variant, 1, state, traversal=SAMPLER)
            for sum_, x in zip(sums, played, strict=True):
                sum_ += share * weight(int(state.t)) * x
        return state

    states = [
        follow(jaxcfr.solve(tree, variant, 0, traversal=SAMPLER, seed=workers.worker_key(5, worker)), before, 1 / 2)
        for worker in range(2)
    ]
    lengths = [total // count + (number < total % count) for number in range(count)]
    lengths = [length for length in lengths if length]
    start = before
    for number, length in enumerate(lengths):
        state = states[number % 2]._replace(t=jnp.int32(start))
        follow(state, length, 1.0)
        start += length
    expected = [averaged(treeplex, sum_) for treeplex, sum_ in zip(tree.treeplexes, sums, strict=True)]
    for a, b in zip(mine.strategy(), expected, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-11)
    # It goes on, and the same again gives the same bits.
    again = trainer(kuhn, regret=variant, workers=2).train(before).train_split(total, count)
    assert_same_bits(again.train(5).strategy(), mine.train(5).strategy())
    assert mine.iterations_done == end + 5


def test_workers_in_one_batch_are_the_same_runs(kuhn, monkeypatch):
    """As on devices that a batch fills: the same runs as one by one, but for the last bits."""
    one_by_one = trainer(kuhn).train(10)
    monkeypatch.setitem(workers.INNER, "cpu", 2)
    together = trainer(kuhn).train(4).train(6)
    for a, b in zip(one_by_one.strategy(), together.strategy(), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)


def test_windows_cover_the_timeline():
    for total in range(1, 30):
        for count in range(1, 9):
            starts, lengths = workers.windows(total, count)
            assert lengths.sum() == total
            assert lengths.min() > 0
            assert np.ptp(lengths) <= 1
            assert starts.tolist() == np.concatenate([[0], np.cumsum(lengths)[:-1]]).tolist()


def test_a_split_keeps_count_of_what_it_visits(kuhn):
    one = jaxcfr.solve(kuhn.tree, None, 10, traversal=SAMPLER, seed=1).sampling.visited
    mine = trainer(kuhn, workers=1).train(10).train_split(40, 4)
    visited = mine._team.rounds[0].sampling.visited
    assert 4 * int(one) < int(visited) < 6 * int(one)


def test_full_tree_needs_one_worker(kuhn):
    with pytest.warns(UserWarning, match="identical"):
        mine = jaxcfr.Trainer(kuhn, jaxcfr.full_tree(), workers=4)
    assert mine.workers == 1
    with pytest.warns(UserWarning, match="repeat"):
        mine.train_split(30, 3)
    assert mine.iterations_done == 30
    assert_same_bits(mine.strategy(), jaxcfr.Trainer(kuhn, jaxcfr.full_tree()).train(30).strategy())


def test_replace_begins_anew(kuhn):
    mine = trainer(kuhn).train(5)
    other = mine.replace(regret=jaxcfr.dcfr(), seed=6)
    assert (other.iterations_done, other.workers, other.seed) == (0, 3, 6)
    assert other.algorithm == mine.algorithm
    assert_same_bits(other.strategy(), jaxcfr.uniform_strategy(kuhn.tree))
    assert mine.iterations_done == 5
    pruned = mine.replace(regret=jaxcfr.dcfr(), pruning=jaxcfr.probabilistic_pruning())
    assert pruned.algorithm.pruning == jaxcfr.probabilistic_pruning()
    assert mine.replace(algorithm=jaxcfr.full_tree()).workers == 1
    with pytest.raises(errors.OptionError, match="no setting 'colour'"):
        mine.replace(colour=1)


def test_replace_takes_options_off_again(kuhn):
    pruned = trainer(
        kuhn, regret=jaxcfr.dcfr(), algorithm=jaxcfr.external_sampling(pruning=jaxcfr.probabilistic_pruning())
    )
    assert pruned.replace(pruning=None).algorithm.pruning is None
    assert pruned.replace(seed=1).algorithm == pruned.algorithm
    assert trainer(kuhn, algorithm=jaxcfr.chance_sampling(3)).replace(chance_samples=1).algorithm.rolls == 1


def test_a_split_of_nothing_changes_nothing(kuhn):
    mine, other = trainer(kuhn).train(4), trainer(kuhn).train(4)
    mine.train_split(0)
    assert_same_bits(mine.strategy(), other.strategy())
    for worker in range(3):
        with pytest.warns(UserWarning, match="of 3"):
            assert_same_bits(mine.regret_table(worker).regrets, other.regret_table(worker).regrets)


def test_callbacks_are_called_once_a_window(kuhn):
    mine = trainer(kuhn)
    seen = []

    @mine.on_iteration
    def watch(done, profile):
        seen.append((done, profile))

    mine.train(12).train_split(9).train(0)
    assert [done for done, _ in seen] == [12, 21, 21]
    assert seen[-1][1] == mine.profile()
    assert seen[0][1].iterations == 12
    mine.on_iteration(None)
    mine.train(1)
    assert len(seen) == 3


def test_history_target_and_progress(kuhn, capsys):
    mine = jaxcfr.Trainer(kuhn, jaxcfr.full_tree()).train(5, eval_every=2).train(3, eval_every=4, progress=True)
    assert [record["iteration"] for record in mine.history] == [2, 4, 5, 8]
    for record in mine.history:
        assert record["exploitability"] == record["nash_conv"] / 2 == pytest.approx(sum(record["gains"]) / 2)
    assert mine.history[-1]["nash_conv"] == pytest.approx(float(jaxcfr.nash_conv(kuhn.tree, mine.strategy())))
    columns = mine.history_columns()
    assert columns["iteration"] == [2, 4, 5, 8]
    assert set(columns) == {
        "iteration", "nash_conv", "exploitability", "payoff_0", "payoff_1", "gain_0", "gain_1", "seconds",
    }  # fmt: skip
    assert {len(values) for values in columns.values()} == {4}
    shown = capsys.readouterr().err
    assert "NashConv" in shown
    assert "it/s" in shown
    mine.train(100_000, target_exploitability=1e-3, eval_every=10)
    assert mine.history[-1]["exploitability"] <= 1e-3 < mine.history[-2]["exploitability"]
    assert mine.iterations_done < 2000


def test_ctrl_c_loses_nothing(kuhn, monkeypatch, tmp_path, request):
    mine, calls = trainer(kuhn), []
    advance = workers.advance

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) in (3, 5):
            os.kill(os.getpid(), signal.SIGINT)
        return advance(*arguments)

    monkeypatch.setattr(workers, "advance", interrupted)
    # In the background of a shell the signal is ignored.
    request.addfinalizer(functools.partial(signal.signal, signal.SIGINT, signal.getsignal(signal.SIGINT)))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):
        mine.train(100_000_000, checkpoint=tmp_path / "run.ckpt")
    done = mine.iterations_done
    assert 2 <= done < 100_000
    assert jaxcfr.Trainer.load(tmp_path / "run.ckpt", kuhn).iterations_done == done
    with pytest.raises(KeyboardInterrupt):
        mine.train_split(100_000_000)
    assert mine.iterations_done == done  # a split that is not whole is no split
    assert_same_bits(mine.train(5).strategy(), trainer(kuhn).train(done + 5).strategy())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_locks_and_blends(kuhn):
    uniform = jaxcfr.uniform_strategy(kuhn.tree)
    mine = jaxcfr.Trainer(kuhn, jaxcfr.full_tree(), jaxcfr.pcfr_plus(), locked={0: {"0": {"pass": 0.2, "bet": 0.8}}})
    mine.train(2000, target_exploitability=1e-4)
    assert mine.iterations_done < 2000
    assert mine.profile().average_strategy(0, "0") == pytest.approx({"pass": 0.2, "bet": 0.8})
    mine.lock(None)
    assert mine.iterations_done == 0
    mine.train(10).blend_opponent(1, lambda key: [0.5, 0.5], jaxcfr.geometric(0.8, 0.9))
    assert mine.iterations_done == 0
    blended = jaxcfr.blend(kuhn, {1: (uniform, jaxcfr.geometric(0.8, 0.9))})
    state = jaxcfr.solve(kuhn.tree, jaxcfr.pcfr_plus(), 20, blended=blended)
    assert_same_bits(mine.train(20).strategy(), jaxcfr.average_strategy(kuhn.tree, state))
    mine.blend_all(jaxcfr.Profile.from_strategy(kuhn, uniform), jaxcfr.linear(1.0, 0.0, 100))
    mine.train(2000)
    assert mine.iterations_done == 2000
    assert float(jaxcfr.exploitability(kuhn.tree, mine.strategy())) < 1e-4
    kept = mine.replace(seed=3)
    assert_same_bits(kept.train(2000).strategy(), mine.strategy())
    # Splits of a blend: every window blends with the share of its own t.
    sampled = trainer(kuhn, workers=2)
    sampled.blend_all(uniform, jaxcfr.linear(1.0, 0.0, 10))
    sampled.train_split(20, 2)
    late = trainer(kuhn, workers=2)
    late.blend_all(uniform, jaxcfr.constant(1.0))
    late.train_split(20, 2)
    assert_same_bits(late.strategy(), uniform)
    assert float(jaxcfr.nash_conv(kuhn.tree, sampled.strategy())) != float(jaxcfr.nash_conv(kuhn.tree, uniform))


def test_names_trees_and_the_one_call_form(kuhn):
    assert jaxcfr.Trainer("kuhn_poker", workers=1).lowered.name == "kuhn_poker"
    profile = jaxcfr.Profile.train(kuhn, 30, algorithm=jaxcfr.full_tree(), regret=jaxcfr.cfr_plus())
    assert profile == jaxcfr.Trainer(kuhn, jaxcfr.full_tree(), jaxcfr.cfr_plus()).train(30).profile()
    assert (profile.variant, profile.iterations, profile.seed) == ("cfr_plus", 30, 0)
    bare = jaxcfr.Trainer(kuhn.tree, jaxcfr.full_tree()).train(3)
    with pytest.raises(errors.OptionError, match="keys"):
        bare.profile()
    with pytest.raises(errors.OptionError, match="keys"):
        bare.on_iteration(print)


def test_what_is_wrong_is_said(kuhn):
    for settings, words in [
        ({"algorithm": jaxcfr.full_tree}, "call it"),
        ({"regret": jaxcfr.dcfr_plus}, "call it"),
        ({"workers": 0}, "workers"),
        ({"workers": 2.0}, "workers"),
        ({"seed": -1}, "seed"),
        ({"regret": None}, "variant"),
        ({"updates": "backwards"}, "updates"),
        ({"pruning": jaxcfr.probabilistic_pruning(), "algorithm": jaxcfr.outcome_sampling()}, "no pruning"),
        ({"variance_reduction": jaxcfr.control_variate(), "algorithm": jaxcfr.full_tree()}, "no variance_reduction"),
        ({"chance_samples": 2}, "no chance_samples"),
    ]:
        with pytest.raises(errors.OptionError, match=words):
            trainer(kuhn, **settings)
    assert trainer(kuhn, algorithm=jaxcfr.chance_sampling(), chance_samples=2).algorithm == jaxcfr.chance_sampling(2)
    mine = trainer(kuhn, regret=jaxcfr.hs_dcfr(30, total=10))
    with pytest.raises(errors.HorizonError):
        mine.train(11)
    with pytest.raises(errors.HorizonError):
        mine.train_split(11)
    for call, words in [
        (lambda: mine.train(-1), "iterations"),
        (lambda: mine.train(5, eval_every=0), "eval_every"),
        (lambda: mine.train(5, eval_every=0, target_exploitability=0), "eval_every"),
        (lambda: mine.train(5, target_exploitability=True), "target"),
        (lambda: jax.jit(mine.train)(5), "outside of jit"),
        (lambda: mine.replace(algorithm="x"), "algorithm"),
        (lambda: mine.blend_opponent([0], lambda key: [1, 0], 0.5), "player"),
        (lambda: mine.train(5, checkpoint_every=2), "checkpoint"),
        (lambda: mine.train(5, target_exploitability=-1), "target"),
        (lambda: mine.train(5, target_exploitability="low"), "target"),
        (lambda: mine.train_split(5, 0), "workers"),
        (lambda: mine.regret_table(3), "worker"),
        (lambda: mine.on_iteration(3), "called"),
        (lambda: mine.blend_opponent(7, lambda key: [1, 0], 0.5), "player"),
    ]:
        with pytest.raises(errors.OptionError, match=words):
            call()
    assert mine.iterations_done == 0
    three = jaxcfr.Trainer("kuhn_poker(players=3)", jaxcfr.full_tree())
    with pytest.raises(errors.NotTwoPlayerConstantSumError):
        three.train(1, target_exploitability=0.1)


@pytest.mark.slow
def test_variance_falls_with_the_number_of_workers(kuhn):
    """Of the expected payoff and of a probability, over seeds; about 1 / W, within what 150 seeds can tell."""
    seeds, found = 150, {}
    for count in (1, 2, 8):
        values = []
        for seed in range(seeds):
            mine = trainer(kuhn, seed=seed, workers=count, regret=jaxcfr.linear_cfr()).train(100)
            values.append([*np.asarray(mine.strategy()[0]), float(jaxcfr.nash_conv(kuhn.tree, mine.strategy()))])
        found[count] = np.var(np.array(values), axis=0, ddof=1)
    strategies = {count: variance[:-1].sum() for count, variance in found.items()}
    print("variance of the strategy", strategies, "of NashConv", {c: v[-1] for c, v in found.items()})
    for count in (2, 8):
        assert 0.6 / count < strategies[count] / strategies[1] < 1.6 / count
        assert found[count][-1] < found[1][-1] * 1.6 / count


@pytest.mark.parametrize("option", ["pruning", "variance_reduction"])
@pytest.mark.parametrize("value", ["x", jaxcfr.safe_pruning, jaxcfr.control_variate, 3])
def test_options_of_the_algorithm_are_checked_at_once(kuhn, option, value):
    with pytest.raises(errors.OptionError, match="has to be"):
        jaxcfr.Trainer(kuhn, **{option: value})
