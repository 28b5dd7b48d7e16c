import {
  ChosenBy,
  DeploymentId,
  HostClassName,
  KvCacheDtype,
  ModelId,
  ModelSlug,
  maxHostClasses,
  Phase,
  RepoName,
  Runtime,
  type ServingRequest
} from "@seatrial/domain"
import { defineResource, objectSchema } from "@seatrial/kube"
import { Schema } from "effect"
import { Condition } from "./Condition.ts"

const optional = Schema.optionalKey
const text = (description: string) => Schema.String.annotate({ description })
const count = (description: string) => Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)).annotate({ description })
const time = (description: string) => Schema.String.annotate({ description, format: "date-time" })
const yes = (description: string) => Schema.Boolean.annotate({ description })

const Yarn = Schema.Struct({
  factor: Schema.Finite.check(Schema.isGreaterThan(1)).annotate({ description: "How many times the original context the model is stretched to." }),
  originalContext: optional(
    Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)).annotate({ description: "Tokens that the model was made for. Default: what its configuration says." })
  )
}).annotate({ description: "Extension of the model's own context by YaRN." })

const Serving = Schema.Struct({
  runtime: optional(Runtime.annotate({ description: "Engine to serve with: vllm, sglang or reference. Default: the host class's first." })),
  hostClass: optional(
    HostClassName.annotate({
      description:
        "Name of a HostClass (kubectl get hostclasses), or any: the first with free GPUs of those on which the model fits, the cheapest first. Default: the cheapest on which the model fits, whether GPUs are free there or not."
    })
  ),
  hostClasses: optional(
    Schema.Array(HostClassName).check(Schema.isBetweenLength(1, maxHostClasses)).annotate({
      description:
        "Names of HostClasses in order of preference, instead of hostClass: the model is placed on the first that has free GPUs and on which it fits. If none has, it waits for all of them."
    })
  ),
  maxContext: optional(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100_000_000 })).annotate({
      description: "Longest context in tokens. Default: the longest that fits."
    })
  ),
  kvCacheDtype: optional(KvCacheDtype.annotate({ description: "Precision of the KV cache. Default auto: that of the weights, as the engine chooses it." })),
  holdSeconds: optional(
    Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 86_400 })).annotate({
      description:
        "Seconds without a request after which the GPUs are given back: of a verified revision that is not served (default 900), or of a served model (default: never). The weights stay, and the next request to a served model starts it again."
    })
  ),
  yarn: optional(Yarn),
  engineFlags: optional(
    Schema.Record(Schema.String, Schema.Json).annotate({
      description: "Further flags of the engine, by name, for example max_num_seqs. Those that Seatrial does not know to be safe are refused."
    })
  )
}).annotate({ description: "How the model is served; what is left out is chosen." })

/** The specification of a `ModelDeployment`. */
export const ModelDeploymentSpec = Schema.Struct({
  organization: optional(
    Schema.String.check(Schema.isPattern(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/u))
      .check(Schema.isMaxLength(63))
      .annotate({
        description:
          "Slug of the organization it belongs to. Default: the one that the namespace is mapped to; another one is refused. Can be taken away, but not changed."
      })
  ),
  model: optional(
    ModelSlug.check(Schema.isMaxLength(64)).annotate({
      description: "Name of the model within its organization; callers use <organization>/<model>. Default, and all that is allowed: the name of this object."
    })
  ),
  modelId: optional(
    ModelId.check(Schema.isMaxLength(30)).annotate({
      description:
        "Id of a model that the organization has already, mdl_...: then this object revises that model, whatever its own name is, and deleting it leaves the model as it is. Default: a new model, named as this object is. Cannot be changed."
    })
  ),
  deploymentId: optional(
    DeploymentId.check(Schema.isMaxLength(30)).annotate({
      description: "Id of the run that this object shows. Set by Seatrial on the objects that it makes itself; leave it out."
    })
  ),
  source: Schema.Struct({
    repo: RepoName.check(Schema.isMaxLength(193)).annotate({
      description: "Repository on the model hub, owner/name. Cannot be changed: another repository is another model."
    }),
    // Without the API's look-ahead, which the API server's regular expressions do not support. A separate rule covers
    // it.
    ref: optional(
      Schema.String.check(Schema.isPattern(/^[A-Za-z0-9][A-Za-z0-9._/-]{0,199}$/u))
        .check(Schema.isMaxLength(200))
        .annotate({ description: "Branch, tag or commit, pinned to its commit when the run starts. Default: the default branch." })
    )
  }).annotate({ description: "Where the weights come from." }),
  serving: optional(Serving),
  serve: optional(
    Schema.Boolean.annotate({ description: "Whether the verified revision takes the model's traffic; false only runs the trial. Default true.", default: true })
  )
}).annotate({
  description:
    "What is to be deployed. A run keeps the specification that it began with: changing it starts another run, and what serves goes on until that one is verified."
})
export type ModelDeploymentSpec = typeof ModelDeploymentSpec.Type

/**
 * The state of a run as the operator shows it: a mirror of Postgres and of the run's pods, never read back as truth.
 */
export const ModelDeploymentStatus = Schema.Struct({
  deploymentId: optional(text("Id of the run in the API, for the specification that was accepted last.")),
  model: optional(text("Name of the model, <organization>/<model>, which callers send once it is served.")),
  phase: optional(
    Schema.Literals([...Phase.literals, "refused"]).annotate({
      description:
        "Where the run stands. It ends as activated, failed or cancelled; refused: there is no run, and the condition Accepted says why. message says what it does or waits for."
    })
  ),
  message: optional(text("What the run does or waits for now, and why it ended.")),
  cause: optional(
    Schema.Struct({
      reason: text(
        "One word, for programs, as the scheduler or the node says it, such as Unschedulable, ImagePullBackOff, OOMKilled, NotReady, NodeNotReady; or GpuFault, a card that failed (XID)."
      ),
      message: text("The same in full."),
      object: text("Of which object it is said, kind/name.")
    }).annotate({ description: "What the run's own pods and nodes say is wrong now, or was wrong when the run failed. Absent where nothing is." })
  ),
  queue: optional(
    Schema.Struct({
      waitsFor: Schema.Literals(["OlderRun", "OrganizationLimit", "HostClass", "Capacity"]).annotate({
        description: "An older run of the model, the organization's limit of GPUs, a host class that does not exist, or free GPUs."
      }),
      place: optional(count("Place in the queue of the host class; 1 goes next.")),
      message: text("The same in words.")
    }).annotate({ description: "What the run waits for, while it is in waiting or queued." })
  ),
  download: optional(
    Schema.Struct({
      bytes: count("Bytes that are there."),
      totalBytes: count("Bytes of all files."),
      bytesPerSecond: count("Bytes per second, over the last half minute."),
      secondsLeft: optional(count("Seconds that it takes on at that speed. Absent where nothing comes.")),
      stalled: optional(yes("Whether nothing came for a minute or more: it goes on over new connections."))
    }).annotate({ description: "How the download of the weights goes on, while the run is in materializing." })
  ),
  revision: optional(text("First twelve digits of the commit that the run deploys.")),
  commit: optional(text("The full commit.")),
  weightsManifest: optional(
    text("SHA-256 of the list of all files that the engine is started with, each with its size and hash; those of an adapter's base are among them.")
  ),
  hostClass: optional(text("Name of the host class that was chosen.")),
  gpus: optional(count("GPUs of its engine.")),
  runtime: optional(text("Engine that was chosen.")),
  engineVersion: optional(text("Engine and version, as receipts name it.")),
  engineImage: optional(text("Image that the revision was tried with, and serves with whatever its host class says later. Absent until its engine runs.")),
  engineDigest: optional(
    text("Digest of that image: later pods of the revision are given it by that, whatever its name stands for then. Absent where the node tells none.")
  ),
  maxContext: optional(count("Longest context in tokens.")),
  settings: optional(
    Schema.Array(
      Schema.Struct({
        name: text("Name of the setting as the API has it; those of the engine after engine_flags."),
        value: text("Its value, as JSON."),
        chosenBy: ChosenBy.annotate({
          description:
            "Who chose it: the request, the host class (its first runtime), the fit (the cheapest that fits, the longest context), the model (its architecture and chat template), a default of Seatrial for that card, or the repository's generation configuration. What a redeploy keeps is told as it was chosen then."
        })
      }).annotate({ description: "One setting of the revision." })
    ).annotate({ description: "What the engine is started with, and who chose it. Absent for revisions of versions that did not keep it." })
  ),
  endpoint: optional(
    text("Name that callers send as `model`. Set while the model is served; where Ready is not True, it is an earlier specification's revision that serves.")
  ),
  pod: optional(text("Name of the engine's pod, in the operator's namespace. Absent while there is none.")),
  phases: optional(
    Schema.Array(
      Schema.Struct({
        phase: Phase.annotate({ description: "The phase." }),
        at: time("When the phase was entered."),
        reason: optional(text("Why it was entered."))
      }).annotate({
        description: "One phase that the run passed."
      })
    ).annotate({ description: "History of phases, oldest first." })
  ),
  checks: optional(
    Schema.Array(
      Schema.Struct({ name: text("Name of the check."), passed: yes("Whether it passed."), detail: optional(text("Numbers and codes.")) }).annotate({
        description: "One row of the trial."
      })
    ).annotate({ description: "Outcome of the trial's checks." })
  ),
  measured: optional(
    Schema.Struct({
      weightsBytes: optional(count("Bytes of weights on one GPU.")),
      kvCacheBytes: optional(count("Bytes of KV cache on one GPU.")),
      kvCacheTokens: optional(count("Tokens that the KV cache holds.")),
      overheadBytes: optional(Schema.Int.annotate({ description: "Bytes on one GPU beside weights and KV cache." })),
      maxConcurrency: optional(Schema.Finite.annotate({ description: "Sequences of the longest context held at once." })),
      loadSeconds: optional(Schema.Finite.annotate({ description: "Seconds that loading the weights took." }))
    }).annotate({ description: "What the engine itself reported after its start." })
  ),
  benchmark: optional(
    Schema.Struct({
      suite: text("Workload and its version."),
      inputTokens: count("Tokens of each prompt."),
      outputTokens: count("Tokens of each answer."),
      steps: Schema.Array(
        Schema.Struct({
          concurrency: count("Requests that were under way at once."),
          requests: count("Requests measured."),
          errors: count("Requests that failed."),
          seconds: Schema.Finite.annotate({ description: "Length of the measured window." }),
          outputTokensPerSecond: Schema.Finite.annotate({ description: "Tokens that arrived in the window, by its seconds." }),
          ttftMsP50: optional(Schema.Finite.annotate({ description: "Median time to first token in milliseconds; absent where the sample is too small." })),
          tpotMsP50: optional(Schema.Finite.annotate({ description: "Median time per output token in milliseconds; absent where the sample is too small." })),
          requestsPerSecond: optional(Schema.Finite.annotate({ description: "Answers that ended in the window, by its seconds." })),
          goodputPerSecond: optional(
            Schema.Finite.annotate({ description: "Of these the ones with a first token within 2 s and at most 100 ms for each further one." })
          ),
          steady: optional(yes("Whether the standard error of the throughput's blocks is at most 5%. Absent where there are too few."))
        })
      ).annotate({ description: "One entry for each number of requests at once." }),
      scale: optional(Schema.Finite.annotate({ description: "Share of the full workload's times that benchmarkSeconds allows." })),
      missing: optional(text("Why the figures are void, by no fault of the model. Absent where they are not.")),
      slow: optional(Schema.Finite.annotate({ description: "Throughput against the median of earlier benchmarks of the same; absent from 0.7 on." }))
    }).annotate({ description: "How fast it was, alone and at steps of concurrency." })
  ),
  failure: optional(
    Schema.Struct({ code: text("Stable code of the failure."), message: text("What happened and what to do.") }).annotate({
      description: "Why the run failed."
    })
  ),
  conditions: optional(
    Schema.Array(Condition).annotate({
      description: "Accepted: whether this specification became a run. Ready: whether its engine serves. Activated, Failed: how the run ended."
    })
  ),
  observedGeneration: optional(count("The generation of the specification that the operator last saw."))
}).annotate({ description: "What became of it. Written by the operator alone." })
export type ModelDeploymentStatus = typeof ModelDeploymentStatus.Type

/**
 * A model as cluster users deploy it and follow it: namespaced, `kubectl get mdep`. An applied object is named after
 * its model and shows the newest run. An object that the operator creates for an API run is named after that run.
 */
export const ModelDeployment = defineResource({
  group: "seatrial.dev",
  version: "v1alpha1",
  plural: "modeldeployments",
  kind: "ModelDeployment",
  namespaced: true,
  schema: objectSchema({ spec: ModelDeploymentSpec, status: optional(ModelDeploymentStatus) })
})
export type ModelDeployment = (typeof ModelDeployment.schema)["Type"]

/** A serving request in the format of the custom resource. */
export const toSpecServing = (request: ServingRequest): NonNullable<ModelDeploymentSpec["serving"]> => ({
  ...(request.runtime === undefined ? {} : { runtime: request.runtime }),
  ...(request.host_class === undefined ? {} : typeof request.host_class === "string" ? { hostClass: request.host_class } : { hostClasses: request.host_class }),
  ...(request.max_context === undefined ? {} : { maxContext: request.max_context }),
  ...(request.kv_cache_dtype === undefined ? {} : { kvCacheDtype: request.kv_cache_dtype }),
  ...(request.hold_seconds === undefined ? {} : { holdSeconds: request.hold_seconds }),
  ...(request.yarn === undefined
    ? {}
    : { yarn: { factor: request.yarn.factor, ...(request.yarn.original_context === undefined ? {} : { originalContext: request.yarn.original_context }) } }),
  ...(request.engine_flags === undefined ? {} : { engineFlags: request.engine_flags })
})
