#!/bin/sh
# An experiment on a SLURM cluster: written down once, each stage a job, compared.
#
#     sh examples/gallery/cluster.sh [OPTION …]          where you can type sbatch; all nodes share the folder
#     BENCH_SLURM=local sh examples/gallery/cluster.sh   to try it: each job is a process of this machine
#
# Needs the extra `slurm`. Options are those of `bench plan`, and count over those below: --method msm --device cuda.
# Three minutes where it is tried on two cores; leaves experiment.toml, results/ and store/ where it runs.
set -eu

bench plan --method crop,ict --suite mrtydi --task sw --seed 0,1,2 --set budget.tokens=20k "$@" --save experiment.toml
bench run experiment.toml --executor slurm
bench compare experiment.toml
