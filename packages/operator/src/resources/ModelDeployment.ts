import {
  ChosenBy,
  DeploymentId,
  defaultTarget,
  HostClassName,
  KvCacheDtype,
  ModelId,
  ModelSlug,
  maxHostClasses,
  maxReplicas,
  Phase,
  RepoName,
  Runtime,
  ScalingTarget,
  type ServingRequest
} from "@seatrial/domain"
import { defineResource, objectSchema } from "@seatrial/kube"
import { Schema } from "effect"
import { Condition, observedGeneration } from "./Condition.ts"

const optional = Schema.optionalKey
const text = (description: string) => Schema.String.annotate({ description })
const count = (description: string) => Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)).annotate({ description })
const time = (description: string) => Schema.String.annotate({ description, format: "date-time" })
const yes = (description: string) => Schema.Boolean.annotate({ description })

const Yarn = Schema.Struct({
  factor: Schema.Finite.check(Schema.isGreaterThan(1)).annotate({ description: "Factor by which the original context is extended." }),
  originalContext: optional(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100_000_000 })).annotate({
      description: "Original context in tokens. Default: from the model's configuration."
    })
  )
}).annotate({ description: "Extension of the model's own context by YaRN." })

const Serving = Schema.Struct({
  runtime: optional(
    Runtime.annotate({
      description: `Engine to serve with: ${Runtime.literals.slice(0, -1).join(", ")} or ${Runtime.literals.at(-1)}. Default: the host class's first.`
    })
  ),
  hostClass: optional(
    HostClassName.annotate({
      description:
        'Name of a HostClass (kubectl get hostclasses), or "any", which means the cheapest class with free GPUs on which the model fits. Default: the cheapest class on which the model fits, even if it has no free GPUs.'
    })
  ),
  hostClasses: optional(
    // Without a maximum length of the names, the API server refuses the CEL rule on the list as too costly.
    Schema.Array(HostClassName.check(Schema.isMaxLength(63)))
      .check(Schema.isBetweenLength(1, maxHostClasses))
      .annotate({
        description:
          "Names of HostClasses in order of preference, instead of hostClass. The model is placed on the first class that has free GPUs and on which the model fits. If no class has free GPUs, the deployment waits in the queues of all these classes, and starts on the first one that has enough free GPUs."
      })
  ),
  maxContext: optional(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100_000_000 })).annotate({
      description: "Longest context in tokens. Default: the longest that fits."
    })
  ),
  kvCacheDtype: optional(
    KvCacheDtype.annotate({ description: "Precision of the KV cache. Default auto: the engine chooses it from the precision of the weights." })
  ),
  holdSeconds: optional(
    Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 86_400 })).annotate({
      description:
        "Seconds without a request after which the GPUs are released, for a verified revision that is not served (default 900) or for a served model (default: never). The weights stay, and the next request to a served model starts it again."
    })
  ),
  yarn: optional(Yarn),
  engineFlags: optional(
    Schema.Record(Schema.String, Schema.Json).annotate({
      description: "Additional engine flags by name, as in the engine's list of flags. Flags that are not on Seatrial's allowlist are refused."
    })
  )
}).annotate({ description: "How the model is served. Seatrial chooses omitted settings." })

/** The specification of a `ModelDeployment`. */
export const ModelDeploymentSpec = Schema.Struct({
  organization: optional(
    Schema.String.check(Schema.isPattern(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/u))
      .check(Schema.isMaxLength(63))
      .annotate({
        description:
          "Slug of the organization that owns the model. Default: the organization of the namespace; any other is refused. Can be removed, but not changed."
      })
  ),
  model: optional(
    ModelSlug.check(Schema.isMaxLength(64)).annotate({
      description: "Name of the model within its organization; callers use <organization>/<model>. Must be the name of this object (the default)."
    })
  ),
  modelId: optional(
    ModelId.check(Schema.isMaxLength(30)).annotate({
      description:
        "Id of an existing model of the organization, mdl_.... This object then revises that model, whatever its own name is, and deleting the object does not delete the model. Default: a new model with the name of this object. Cannot be changed."
    })
  ),
  deploymentId: optional(
    DeploymentId.check(Schema.isMaxLength(30)).annotate({
      description: "Id of the run that this object shows. Seatrial sets this field on objects that it creates. Omit it."
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
        .annotate({ description: "Branch, tag or commit. It is resolved to a commit when the run starts. Default: the default branch." })
    )
  }).annotate({ description: "Source of the weights." }),
  serving: optional(Serving),
  replicas: optional(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: maxReplicas })).annotate({
      description:
        "How many engines serve the model; kubectl scale, a HorizontalPodAutoscaler or KEDA may set it. Changing it starts no run. Default: the number that the API set, at first 1."
    })
  ),
  scaling: optional(
    Schema.Struct({
      minReplicas: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: maxReplicas })).annotate({
        description:
          "Smallest number of engines that the autoscaler sets. 0 leaves one. After serving.holdSeconds without requests all engines stop, whatever this number is."
      }),
      maxReplicas: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: maxReplicas })).annotate({
        description: "Largest number of engines that the autoscaler sets."
      }),
      target: optional(
        ScalingTarget.annotate({ description: `Share of the engines' measured capacity that the autoscaler aims to use. Default ${defaultTarget}.` })
      )
    }).annotate({
      description:
        "Limits between which the number of engines follows the load. minReplicas must be below maxReplicas; for a fixed number, set replicas. Changing them starts no run. Cannot be combined with replicas, so kubectl scale and HorizontalPodAutoscalers do not work."
    })
  ),
  serve: optional(
    Schema.Boolean.annotate({ description: "Whether the verified revision gets the model's traffic. false only runs the trial. Default true.", default: true })
  )
}).annotate({
  description:
    "The model to deploy. Changing the specification starts a new run, unless only replicas or scaling change; the current revision continues to serve until the new one is verified."
})
export type ModelDeploymentSpec = typeof ModelDeploymentSpec.Type

/**
 * The state of a run as the operator shows it: a mirror of Postgres and of the run's pods, never read back as truth.
 */
export const ModelDeploymentStatus = Schema.Struct({
  deploymentId: optional(text("Id of the run of the last accepted specification, as the API shows it (dep_...).")),
  model: optional(text("Name of the model, <organization>/<model>, which callers use once it is served.")),
  phase: optional(
    Schema.Literals([...Phase.literals, "refused"]).annotate({
      description:
        "Phase of the run. It ends as activated, failed or cancelled. refused: there is no run, and the condition Accepted contains the reason. message contains what the run does or waits for."
    })
  ),
  message: optional(text("What the run does or waits for now, and why it ended.")),
  cause: optional(
    Schema.Struct({
      reason: text(
        "Machine-readable reason from the scheduler or the node, such as Unschedulable, ImagePullBackOff, OOMKilled, NotReady, NodeNotReady; or GpuFault, a failed GPU (XID)."
      ),
      message: text("Human-readable message."),
      object: text("The object that has the problem, kind/name.")
    }).annotate({ description: "Problem of the run's pods and nodes now, or when the run failed. Absent if there is none." })
  ),
  queue: optional(
    Schema.Struct({
      waitsFor: Schema.Literals(["OlderRun", "OrganizationLimit", "HostClass", "Capacity"]).annotate({
        description: "An older run of the model, the organization's limit of GPUs, a host class that does not exist, or free GPUs."
      }),
      place: optional(count("Place in the queue of the host class; 1 goes next.")),
      message: text("Human-readable message.")
    }).annotate({ description: "What the run waits for, while it is in waiting or queued." })
  ),
  download: optional(
    Schema.Struct({
      bytes: count("Bytes downloaded."),
      totalBytes: count("Bytes of all files."),
      bytesPerSecond: count("Bytes per second, over the last half minute."),
      secondsLeft: optional(count("Estimated remaining seconds. Absent if nothing arrives.")),
      stalled: optional(yes("Whether nothing has arrived for a minute or more. The download continues over new connections."))
    }).annotate({ description: "Progress of the download of the weights, while the run is in materializing." })
  ),
  revision: optional(text("First twelve digits of the commit that the run deploys.")),
  commit: optional(text("The full commit.")),
  weightsManifest: optional(text("SHA-256 of the list of files that the engine loads, with size and hash of each. Includes the files of an adapter's base.")),
  hostClass: optional(text("Name of the host class that was chosen.")),
  gpus: optional(count("GPUs of its engine.")),
  runtime: optional(text("Engine that was chosen.")),
  engineVersion: optional(text("Engine and version, as in receipts.")),
  engineImage: optional(
    text("Image with which the revision was verified. The revision serves with this image even if its host class changes. Absent until the engine runs.")
  ),
  engineDigest: optional(
    text("Digest of that image. Later pods of the revision use this digest even if the tag has moved. Absent if the node does not report a digest.")
  ),
  maxContext: optional(count("Longest context in tokens.")),
  settings: optional(
    Schema.Array(
      Schema.Struct({
        name: text("Name of the setting in the API; engine flags start with engine_flags."),
        value: text("Its value, as JSON."),
        chosenBy: ChosenBy.annotate({
          description:
            "Who chose it: the request, the host class (its first runtime), the fit (the cheapest class that fits, the longest context), the model (its architecture and chat template), a default of Seatrial for that GPU type, or the repository's generation configuration. A redeploy keeps the original choice."
        })
      }).annotate({ description: "One setting of the revision." })
    ).annotate({
      description:
        "Settings of the engine, and who chose each. Absent if the revision was created by an earlier version of Seatrial that did not record the settings."
    })
  ),
  endpoint: optional(
    text(
      "Name that callers send as `model`. Set while a revision of the model serves. If Ready is not True, the serving revision may belong to an earlier specification."
    )
  ),
  serving: optional(
    Schema.Struct({
      deploymentId: text("Id of the run whose revision serves."),
      revision: text("First twelve digits of its commit."),
      replicas: count("Engines that a gateway has reached. While the model moves to the revision, engines of earlier revisions count too.")
    }).annotate({ description: "The revision that has the model's traffic. Absent if none has it." })
  ),
  desiredReplicas: optional(count("How many engines the model should have. Absent if this object shows a run that does not serve.")),
  replicas: optional(
    count(
      "Engine pods that exist: those of the revision that serves, or of the run if none serves. An engine above the first exists once it is granted GPUs. While the model moves to the revision, engines of earlier revisions that serve count too."
    )
  ),
  readyReplicas: optional(count("The engines among them that serve: a gateway has reached them.")),
  selector: optional(text("Label selector of these pods, except those of earlier revisions, in the operator's namespace, for HorizontalPodAutoscalers.")),
  latest: optional(
    Schema.Struct({
      deploymentId: text("Id of the newest run."),
      phase: Phase.annotate({ description: "Its phase." }),
      revision: optional(text("First twelve digits of its commit. Absent until the commit is known."))
    }).annotate({ description: "The newest run, which the other fields of the status describe." })
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
        description: "One check of the trial."
      })
    ).annotate({ description: "Outcome of the trial's checks." })
  ),
  measured: optional(
    Schema.Struct({
      weightsBytes: optional(count("Bytes of weights on one GPU.")),
      kvCacheBytes: optional(count("Bytes of KV cache on one GPU.")),
      kvCacheTokens: optional(count("Tokens that the KV cache holds.")),
      overheadBytes: optional(Schema.Int.annotate({ description: "Bytes on one GPU in addition to weights and KV cache." })),
      maxConcurrency: optional(Schema.Finite.annotate({ description: "Sequences with the longest context that fit at the same time." })),
      loadSeconds: optional(Schema.Finite.annotate({ description: "Seconds for loading the weights." }))
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
          outputTokensPerSecond: Schema.Finite.annotate({ description: "Tokens that arrived in the window, per second." }),
          ttftMsP50: optional(Schema.Finite.annotate({ description: "Median time to first token in milliseconds; absent if the sample is too small." })),
          tpotMsP50: optional(Schema.Finite.annotate({ description: "Median time per output token in milliseconds; absent if the sample is too small." })),
          requestsPerSecond: optional(Schema.Finite.annotate({ description: "Answers that ended in the window, per second." })),
          goodputPerSecond: optional(
            Schema.Finite.annotate({
              description: "Answers per second that met the latency limits: first token within 2 s, and at most 100 ms for each further token."
            })
          ),
          steady: optional(yes("Whether the throughput was steady: its standard error is at most 5%. Absent if the sample is too small."))
        })
      ).annotate({ description: "One entry for each number of concurrent requests." }),
      scale: optional(Schema.Finite.annotate({ description: "Share of the full workload's duration that benchmarkSeconds allows." })),
      missing: optional(text("Why the figures are not valid; the model is not at fault. Absent if they are valid.")),
      slow: optional(
        Schema.Finite.annotate({
          description: "Throughput relative to the median of earlier benchmarks of the same model and settings; absent if it is at least 0.7."
        })
      )
    }).annotate({ description: "Speed for a single request and at several levels of concurrency." })
  ),
  failure: optional(
    Schema.Struct({ code: text("Stable code of the failure."), message: text("What happened and what to do.") }).annotate({
      description: "Why the run failed."
    })
  ),
  conditions: optional(
    Schema.Array(Condition).annotate({
      description:
        "Accepted: whether this specification has a run. Ready: whether its engine serves. Available: whether the model answers, with this or an earlier revision. ScalingLimited: whether the model has fewer engines than it should have, and why. Suspect: present if the probes of a serving engine differ from its trial. Progressing: whether the newest run proceeds or has succeeded. Stalled: whether nothing happens until the specification changes. Activated, Failed: how the run ended."
    })
  ),
  observedGeneration: optional(observedGeneration("The generation of the specification that the operator last saw."))
}).annotate({ description: "State of the deployment. Written only by the operator." })
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
