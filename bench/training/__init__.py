"""What a trainer is written with: configs, batches, losses, heads, banks, probes, and the loop that trains and resumes.

The public face of the package for methods; importing it imports no torch. `bench` has what every plugin needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.core.lazy import lazy

if TYPE_CHECKING:
    from bench.core.encoder_config import ENCODER_CONFIG as ENCODER_CONFIG
    from bench.core.encoder_config import EncoderConfig as EncoderConfig
    from bench.core.encoder_config import Trainer as Trainer
    from bench.core.encoder_config import TrainingJob as TrainingJob
    from bench.core.records import Pooling as Pooling
    from bench.data.corpora.shards import Shards as Shards
    from bench.data.fetching.hub import HubError as HubError
    from bench.retrieval import dense_layers as dense_layers
    from bench.retrieval.families import COLBERT as COLBERT
    from bench.retrieval.families import refuse_guess as refuse_guess
    from bench.retrieval.families import refuse_others as refuse_others
    from bench.retrieval.hub import fetch as fetch
    from bench.retrieval.model_files import SIZES as SIZES
    from bench.retrieval.model_files import Sizes as Sizes
    from bench.retrieval.model_files import listed_modules as listed_modules
    from bench.retrieval.model_files import model_json as model_json
    from bench.retrieval.packed import Ids as Ids
    from bench.retrieval.packed import Packed as Packed
    from bench.retrieval.packed import padded as padded
    from bench.retrieval.packed import pool as pool
    from bench.retrieval.poolers import is_pooler as is_pooler
    from bench.retrieval.prompts import PROMPTS_FILE as PROMPTS_FILE
    from bench.retrieval.prompts import declared_prompts as declared_prompts
    from bench.retrieval.transfer import to_device as to_device
    from bench.training.banks import HostBuffers as HostBuffers
    from bench.training.banks import Ring as Ring
    from bench.training.banks import TaggedBank as TaggedBank
    from bench.training.banks import follow as follow
    from bench.training.banks import twin as twin
    from bench.training.batches import BatchSource as BatchSource
    from bench.training.batches import Masked as Masked
    from bench.training.batches import MixtureSource as MixtureSource
    from bench.training.batches import PairBatch as PairBatch
    from bench.training.batches import RandomSource as RandomSource
    from bench.training.chunks import Chunk as Chunk
    from bench.training.chunks import Chunks as Chunks
    from bench.training.config import SHORTEST as SHORTEST
    from bench.training.config import BlocksConfig as BlocksConfig
    from bench.training.config import DenseConfig as DenseConfig
    from bench.training.config import MaskConfig as MaskConfig
    from bench.training.config import MlmConfig as MlmConfig
    from bench.training.config import Pass as Pass
    from bench.training.config import PoolBy as PoolBy
    from bench.training.config import Schedule as Schedule
    from bench.training.config import Spent as Spent
    from bench.training.config import StopWhen as StopWhen
    from bench.training.config import TrainingConfig as TrainingConfig
    from bench.training.distributed import candidates as candidates
    from bench.training.distributed import gather as gather
    from bench.training.distributed import offset as offset
    from bench.training.distributed import sizes as sizes
    from bench.training.distributed import weight as weight
    from bench.training.distributed import world_size as world_size
    from bench.training.encoder import TrainableEncoder as TrainableEncoder
    from bench.training.heads import CondenserHead as CondenserHead
    from bench.training.heads import HeadPair as HeadPair
    from bench.training.heads import Layer as Layer
    from bench.training.heads import Projection as Projection
    from bench.training.heads import Shape as Shape
    from bench.training.heads import initialise as initialise
    from bench.training.loop import CorpusTrainer as CorpusTrainer
    from bench.training.loop import Facts as Facts
    from bench.training.loop import fit as fit
    from bench.training.loop import logged as logged
    from bench.training.losses import Similarity as Similarity
    from bench.training.losses import info_nce as info_nce
    from bench.training.losses import paired_info_nce as paired_info_nce
    from bench.training.losses import sharpness as sharpness
    from bench.training.losses import similarities as similarities
    from bench.training.mlm import MaskedBlocks as MaskedBlocks
    from bench.training.mlm import MaskedPairs as MaskedPairs
    from bench.training.mlm import Masking as Masking
    from bench.training.mlm import MlmHead as MlmHead
    from bench.training.mlm import PairsAndMasks as PairsAndMasks
    from bench.training.mlm import masked_prediction as masked_prediction
    from bench.training.mlm import mlm_loss as mlm_loss
    from bench.training.probes import accuracy as accuracy
    from bench.training.probes import deviation as deviation
    from bench.training.probes import in_float64 as in_float64
    from bench.training.views import Bounds as Bounds
    from bench.training.views import Documents as Documents
    from bench.training.views import SentencePairs as SentencePairs
    from bench.training.views import add_special_tokens as add_special_tokens
    from bench.training.views import adjacent as adjacent
    from bench.training.views import in_a_window as in_a_window
    from bench.training.views import pack_sentences as pack_sentences
    from bench.training.views import partner_of as partner_of
    from bench.training.views import random_span as random_span
    from bench.training.views import read_segment as read_segment
    from bench.training.views import segment_counts as segment_counts
    from bench.training.views import segments as segments
    from bench.training.views import token_crop as token_crop
    from bench.training.views import two_sentences as two_sentences

__all__, __getattr__, __dir__ = lazy(__name__, __file__)
