"""The parts of a tweak set that a design varies, and those refused as inseparable."""

from __future__ import annotations

import re

import pytest

from fixtures.designs import Factor
from fixtures.designs._factors import factors, own, remarks, stock_levels
from fixtures.designs.ablation import slugs
from fixtures.terms import BadInput
from fixtures.tweaks import available
from fixtures.tweaks.manifest import parse, read
from tests.designs.profiles import manifest, sysctls


def test_each_setting_and_script_becomes_a_factor_with_levels() -> None:
    text = manifest(
        {
            "sysctl.conf": "vm.swappiness=10",
            "grub.conf": "isolcpus=2 quiet",
            "ulimit.conf": "nofile=9",
        },
        {"levels.deeptweak/vm.swappiness": "1, 60"},
        scripts=("thp",),
    )
    assert factors(parse(text, "p")) == (
        Factor("p", "vm.swappiness", "sysctl", (None, "1", "60", "10")),
        Factor("p", "isolcpus", "boot", (None, "2")),
        Factor("p", "quiet", "boot", (None, "quiet")),
        Factor("p", "nofile", "ulimit", (None, "9")),
        Factor("p", "script:thp", "script", (None, "run")),
    )


def test_the_set_itself_and_stock_are_points_of_every_design() -> None:
    varied = factors(sysctls("vm.a", "vm.b", annotations={"levels.deeptweak/vm.a": "7"}))
    assert (own(varied), stock_levels(varied)) == (
        {"vm.a": "1", "vm.b": "1"},
        {"vm.a": None, "vm.b": None},
    )


@pytest.mark.parametrize(
    ("text", "has"),
    [
        ("", "changes nothing"),
        (manifest({"sysctl.conf": "vm.a=1"}), r"has one part that can be varied, vm\.a"),
    ],
)
def test_a_set_with_less_than_two_settings_is_sent_to_the_matrix(text: str, has: str) -> None:
    with pytest.raises(
        BadInput,
        match=(
            rf"^p: p {has}; a design over keys needs at least two\. "
            r"Measure it with --design=matrix$"
        ),
    ):
        factors(parse(text, "p"))


SYSCTL = "sysctl.conf"
CLASHES = {
    "ratio and bytes": (
        {SYSCTL: "vm.dirty_ratio=1\nvm.dirty_bytes=2"},
        ("vm.dirty_ratio", "vm.dirty_bytes"),
    ),
    "background": (
        {SYSCTL: "vm.dirty_background_bytes=1\nvm.dirty_background_ratio=2"},
        ("vm.dirty_background_ratio", "vm.dirty_background_bytes"),
    ),
    "one pool": (
        {SYSCTL: "vm.nr_hugepages=1\nvm.nr_hugepages_mempolicy=2"},
        ("vm.nr_hugepages", "vm.nr_hugepages_mempolicy"),
    ),
    "forwarding": (
        {SYSCTL: "net.ipv4.ip_forward=1\nnet.ipv4.conf.all.forwarding=0"},
        ("net.ipv4.ip_forward", "net.ipv4.conf.all.forwarding"),
    ),
    "an interface": (
        {SYSCTL: "net.ipv4.ip_forward=1\nnet/ipv4/conf/eth0.1/forwarding=0"},
        ("net.ipv4.ip_forward", "net.ipv4.conf.eth0/1.forwarding"),
    ),
    "all of IPv6": (
        {SYSCTL: "net.ipv6.conf.all.disable_ipv6=1\nnet.ipv6.conf.lo.disable_ipv6=0"},
        ("net.ipv6.conf.all.disable_ipv6", "net.ipv6.conf.lo.disable_ipv6"),
    ),
    "watchdogs": (
        {SYSCTL: "kernel.nmi_watchdog=0\nkernel.watchdog=1"},
        ("kernel.watchdog", "kernel.nmi_watchdog"),
    ),
    "pool by boot": (
        {SYSCTL: "vm.nr_hugepages=1", "grub.conf": "hugepages=7"},
        ("hugepages", "vm.nr_hugepages"),
    ),
    "pool of 2M, the default": (
        {SYSCTL: "vm.nr_hugepages=1", "grub.conf": "hugepagesz=2M hugepages=7"},
        ("hugepages-2M", "vm.nr_hugepages"),
    ),
    "pool of the named default": (
        {
            SYSCTL: "vm.nr_hugepages=1",
            "grub.conf": "default_hugepagesz=1G hugepagesz=1024M hugepages=7",
        },
        ("hugepages-1024M", "vm.nr_hugepages"),
    ),
    "a limit by two ways": (
        {"ulimit.conf": "nofile=1", "service_containerd.conf": "[Service]\nLimitNOFILE=2"},
        ("nofile", "containerd.LimitNOFILE"),
    ),
    "a limit of two runtimes": (
        {
            "service_crio.conf": "[Service]\nLimitCORE=1",
            "service_docker.conf": "[Service]\nLimitCORE=2",
        },
        ("crio.LimitCORE", "docker.LimitCORE"),
    ),
}


@pytest.mark.parametrize(("sections", "pair"), CLASHES.values(), ids=CLASHES)
def test_two_names_for_one_setting_cannot_vary_independently(
    sections: dict[str, str], pair: tuple[str, str]
) -> None:
    with pytest.raises(BadInput) as refusal:
        factors(parse(manifest(sections), "p", "p.yaml"))
    words = str(refusal.value)
    assert words.startswith(f"p.yaml: {pair[0]} and {pair[1]} cannot be varied independently (")
    assert words.endswith(
        "Remove one of them from p, or measure the whole set with --design=matrix"
    )


@pytest.mark.parametrize(
    "sections",
    [
        {SYSCTL: "vm.dirty_ratio=1\nvm.dirty_background_ratio=2"},
        {SYSCTL: "net.ipv4.conf.all.rp_filter=1\nnet.ipv4.conf.eth0.rp_filter=2"},
        {SYSCTL: "kernel.nmi_watchdog=0\nkernel.soft_watchdog=1"},
        {SYSCTL: "vm.nr_hugepages=1", "grub.conf": "hugepagesz=1G hugepages=7"},
        {
            SYSCTL: "vm.nr_hugepages=1",
            "grub.conf": "default_hugepagesz=1G hugepagesz=2M hugepages=7",
        },
        {"ulimit.conf": "nofile=1", "service_containerd.conf": "[Service]\nLimitCORE=2"},
        {"ulimit.conf": "nofile=1", "service_sshd.conf": "[Service]\nLimitNOFILE=2"},
    ],
)
def test_what_only_looks_alike_is_varied(sections: dict[str, str]) -> None:
    assert len(factors(parse(manifest(sections), "p"))) >= 2


@pytest.mark.parametrize(
    ("sections", "says"),
    [
        (
            {SYSCTL: "vm.dirty_ratio=9\nvm.dirty_background_ratio=2"},
            "vm.dirty_background_ratio and vm.dirty_ratio",
        ),
        (
            {SYSCTL: "vm.overcommit_memory=2\nvm.overcommit_ratio=2"},
            "vm.overcommit_ratio and vm.overcommit_memory",
        ),
        (
            {SYSCTL: "vm.nr_hugepages=2", "grub.conf": "default_hugepagesz=1G"},
            "default_hugepagesz and vm.nr_hugepages",
        ),
        (
            {SYSCTL: "net.ipv4.tcp_congestion_control=bbr\nnet.core.default_qdisc=fq"},
            "net.core.default_qdisc and net.ipv4.tcp_congestion_control",
        ),
        ({"grub.conf": "isolcpus=2 nohz_full=2"}, "isolcpus and nohz_full"),
    ],
)
def test_settings_that_lean_on_each_other_are_varied_and_said(
    sections: dict[str, str], says: str
) -> None:
    profile = parse(manifest(sections), "p")
    assert len(factors(profile)) == 2
    (remark,) = remarks(profile)
    assert remark.startswith(f"{says} depend on each other: ")


def test_names_of_derived_sets_are_valid_and_distinct() -> None:
    varied = [
        Factor("p", name, "sysctl", (None, "1"))
        for name in (
            "net.ipv4.conf.eth0/1.x",
            "net.ipv4.conf.eth0-1.x",
            "script:thp",
            "a.LimitCORE",
            "é",
        )
    ]
    made = slugs(varied)
    assert list(made.values()) == [
        "net.ipv4.conf.eth0-1.x",
        "net.ipv4.conf.eth0-1.x-2",
        "script-thp",
        "a.limitcore",
        "x",
    ]
    assert all(re.fullmatch(r"[a-z0-9._-]+", slug) for slug in made.values())


@pytest.mark.parametrize("name", available())
def test_every_catalogue_set_splits_into_factors_or_is_refused(name: str) -> None:
    profile = read(available()[name])
    try:
        varied = factors(profile)
    except BadInput as refusal:
        assert name in WHOLE, refusal  # noqa: PT017 the set that is refused is what is judged
    else:
        assert name not in WHOLE
        assert len({factor.name for factor in varied}) == len(varied) >= 2


# One setting each, and one that says twice how many huge pages there are.
WHOLE = {
    "block-readahead",
    "block-readahead-128",
    "block-readahead-8192",
    "block-scheduler-mq-deadline",
    "block-scheduler-none",
    "checkpoint-io-idle",
    "cpufreq-performance",
    "malloc-hugepages",
    "malloc-keep-memory",
    "malloc-one-arena",
    "openmp-one-thread",
    "process-nice",
    "process-no-thp",
    "scheduler-slice",
    "tcp-bbr",
    "tcp-cubic",
    "thp-always",
    "thp-never",
    "deeptweak-exp2",
}
