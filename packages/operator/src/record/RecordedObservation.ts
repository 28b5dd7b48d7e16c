import { DeploymentId, FailureCode, HostClass, type RepositoryFacts, RevisionId } from "@seatrial/domain"
import { engineFor } from "@seatrial/engines"
import { PlanState, type Run, RunState } from "@seatrial/store"
import { Effect, Option, Schema } from "effect"
import type { ClassOption, Observation } from "../observation/Observation.ts"
import { noGrowth } from "../observation/ObservedEngine.ts"
import type { ObservedFetch } from "../observation/ObservedFetch.ts"
import { ObservedReference } from "../observation/ObservedReference.ts"
import { workKinds } from "../observation/work.ts"
import { HostClassSpec } from "../resources/HostClassResource.ts"
import type { PodClass } from "../resources/PodClass.ts"
import type { Members } from "./delta.ts"

const { Array: List, Boolean: Flag, Finite, Int, Literal, Literals, NullOr, optionalKey, String: Text, Struct, Tuple } = Schema

type Primitive = string | number | boolean | null | undefined
/** The type with all of its optional members. */
type Complete<Value> = Value extends Primitive
  ? Value
  : Value extends ReadonlyArray<infer Item>
    ? ReadonlyArray<Complete<Item>>
    : { readonly [Name in keyof Value]-?: Complete<Value[Name]> }

/** The recorded part of an observation. */
type Recordable = Omit<Observation, "bootLog" | "engine" | "firstReadings"> & {
  /** Read from the engine's log; null if there is no log. */
  readonly startFailure: { readonly code: FailureCode; readonly text: string } | null
  readonly firstReadings: ReadonlyArray<readonly [time: number, firstReadAt: number]>
}

/** The schema, which does not compile if it lacks a member of `Recordable`, also an optional one. */
const recordAll = <S extends Schema.Constraint>(schema: Complete<S["Type"]> extends Complete<Recordable> ? S : never): S => schema

const NamedFailure = Struct({ code: FailureCode, text: Text })
const Volume = Struct({ claimName: NullOr(Text), sizeBytes: NullOr(Finite), requestBytes: NullOr(Finite) })
const { affinity, env, resourceClaims, tolerations } = HostClassSpec.fields

const RecordedClass: Schema.Codec<PodClass, PodClass> = Schema.toType(
  Struct({
    hostClass: HostClass,
    gpuResource: Text,
    nodeSelector: Schema.Record(Text, Text),
    tolerations: tolerations.schema,
    weightsClaim: NullOr(Text),
    weightsCache: NullOr(
      Struct({ claimName: NullOr(Text), storageClassName: NullOr(Text), sizeBytes: NullOr(Finite), verify: Literals(["recorded", "full"]) })
    ),
    benchmarkSeconds: Finite,
    bootDeadlineSeconds: Finite,
    nodes: Int,
    runtimeClassName: NullOr(Text),
    cpu: NullOr(Text),
    memoryBytes: NullOr(Finite),
    guaranteed: Flag,
    sharedMemoryBytes: Finite,
    priorityClassName: NullOr(Text),
    schedulerName: NullOr(Text),
    labels: Schema.Record(Text, Text),
    annotations: Schema.Record(Text, Text),
    env: env.schema,
    affinity: affinity.schema,
    extraResources: Schema.Record(Text, Text),
    resourceClaims: resourceClaims.schema,
    scratch: Volume,
    compileCache: NullOr(Volume),
    podSecurity: Struct({ runAsRoot: Flag, writableRoot: Flag, addCapabilities: List(Text) }),
    drainSeconds: Finite,
    evictable: Flag,
    rollout: Literals(["surge", "replace"]),
    maxSurge: optionalKey(Int),
    maxUnavailable: optionalKey(Int),
    sentinel: optionalKey(Struct({ withdrawLast: optionalKey(Flag) })),
    queueName: NullOr(Text),
    autoscaling: Flag,
    maxGpus: NullOr(Int),
    referenceJob: optionalKey(
      Struct({
        image: NullOr(Text),
        python: Text,
        cpu: Int,
        memoryBytes: Finite,
        waitSeconds: Finite,
        nodeSelector: Schema.Record(Text, Text),
        tolerations: tolerations.schema
      })
    )
  })
)

const Progress = Struct({
  bytes: Finite,
  totalBytes: Finite,
  bytesPerSecond: Finite,
  secondsLeft: NullOr(Finite),
  stalledSeconds: NullOr(Finite),
  waiting: Flag
})

const Fetch: Schema.Codec<ObservedFetch, ObservedFetch> = Schema.Union([
  Struct({ _tag: Literal("Absent") }),
  Struct({
    _tag: Literal("Active"),
    obstacle: NullOr(Struct({ message: Text, usualUntil: NullOr(Finite), podMissingSince: optionalKey(Finite) })),
    progress: NullOr(Progress),
    outdated: optionalKey(Flag),
    runsSince: optionalKey(Finite),
    lastFailure: optionalKey(NamedFailure)
  }),
  Struct({ _tag: Literal("Succeeded") }),
  Struct({ _tag: Literal("Failed"), failure: NamedFailure, endedAt: NullOr(Finite) }),
  Struct({ _tag: Literal("Leaving") })
])

const Reference: Schema.Codec<ObservedReference, ObservedReference> = Schema.Union([
  Struct({ _tag: Literal("Settled"), code: NullOr(Text) }),
  Struct({ _tag: Literal("Absent") }),
  Struct({ _tag: Literal("Active") }),
  Struct({ _tag: Literal("Leaving") }),
  Struct({ _tag: Literal("Waiting") }),
  Struct({ _tag: Literal("Unplaced") }),
  Struct({ _tag: Literal("Ended"), pod: NullOr(Text), code: NullOr(Text) })
])

const attempts = { running: Flag, done: Flag, endedAt: NullOr(Finite), failures: Int, failure: NullOr(NamedFailure), final: Flag }

const Pod = Struct({
  name: Text,
  uid: Text,
  node: NullOr(Text).pipe(Schema.withDecodingDefaultKey(Effect.succeed(null))),
  createdAt: Finite,
  image: NullOr(Text),
  imageDigest: NullOr(Text),
  imagePinned: Flag,
  madeFrom: NullOr(Text),
  deleting: Flag,
  scheduled: Flag,
  scheduledAt: NullOr(Finite),
  unschedulable: NullOr(Struct({ since: Finite, message: Text })),
  gated: Flag,
  copy: NullOr(Struct({ ...attempts, checks: optionalKey(Flag), absent: optionalKey(Literal(true)), progress: NullOr(Progress) })),
  merge: NullOr(Struct(attempts)),
  started: Flag,
  startedAt: NullOr(Finite),
  ready: Flag,
  unreadySidecar: NullOr(Text),
  readyChangedAt: NullOr(Finite),
  restarts: Int,
  lastExit: NullOr(Struct({ code: Int, reason: Text })),
  blocked: NullOr(Text),
  lost: NullOr(Text),
  gpuFault: Flag,
  nodeDownSince: NullOr(Finite),
  url: NullOr(Text)
})

const Boot = Struct({
  boot: Text,
  failures: Int,
  verdict: NullOr(Struct({ outcome: Literals(["same", "drifted", "differs", "suspect"]), message: Text, failures: Int, at: Finite }))
})

const Work = Literals(workKinds)
const Ended = Struct({
  kind: Work,
  about: Text,
  attempts: Int,
  at: Finite,
  since: optionalKey(Finite),
  failure: NullOr(NamedFailure),
  message: Text,
  byRepository: Flag,
  isEngineError: optionalKey(Flag)
})

const WorkState = Struct({ running: NullOr(Work), ended: NullOr(Ended) })

/** An engine above the first. */
const Engine = Struct({
  ordinal: Int,
  pod: NullOr(Pod),
  boot: NullOr(Boot),
  admission: NullOr(Text),
  elsewhere: Flag,
  outdated: Flag,
  work: WorkState,
  sameStart: Flag,
  withdrawnAt: NullOr(Finite),
  requests: NullOr(Finite)
})

const Growth = Struct({
  room: Finite,
  limit: NullOr(Literals(["gpus", "queue", "organization", "funds", "first", "surge"])),
  yields: Int,
  freeing: optionalKey(Flag)
})

/** The load of a model whose number of engines the autoscaler sets. */
const Load = Struct({ changedAt: Finite, since: Finite, samples: List(Struct({ at: Finite, requests: Int })) })

const Counts = Struct({ answered: Finite, failed: Finite })
const Move = Struct({ to: RevisionId, own: Counts, earlier: Counts, evidence: Finite, startingMillis: Finite })

/** The capacity of a host class, as the run sees it. */
const capacity = { freeSlots: Int, ahead: Int, requestedEngines: Int, classGpus: Int, shortage: NullOr(Text), nodeGpus: Int, freeGpus: Int, setAside: Flag }

/**
 * An observation as it is recorded: JSON that this and later versions read. A new field needs a default for earlier
 * records (`Schema.withDecodingDefaultKey`). Not recorded: the log of an engine (only the cause that its adapter read
 * from it), values of environment variables, the chat template, and what was recorded about the run's progress.
 */
const RecordedObservation = recordAll(
  Struct({
    run: RunState,
    resource: NullOr(Struct({ uid: Text, shownPhase: NullOr(Text) })),
    shownSince: Finite,
    keepFinished: NullOr(Finite),
    podClass: NullOr(RecordedClass),
    fetch: Fetch,
    reference: Reference.pipe(Schema.withDecodingDefaultKey(Effect.succeed(ObservedReference.Settled({ code: null })))),
    heldSince: NullOr(Finite).pipe(Schema.withDecodingDefaultKey(Effect.succeed(null))),
    weights: NullOr(Struct({ own: Flag })),
    pod: NullOr(Pod),
    engines: List(Engine).pipe(Schema.withDecodingDefaultKey(Effect.succeed([]))),
    growth: Growth.pipe(Schema.withDecodingDefaultKey(Effect.succeed(noGrowth))),
    load: NullOr(Load).pipe(Schema.withDecodingDefaultKey(Effect.succeed(null))),
    move: NullOr(Move).pipe(Schema.withDecodingDefaultKey(Effect.succeed(null))),
    boot: NullOr(Boot),
    merged: Literals(["none", "wanted", "answered"]),
    blockedSince: NullOr(Finite),
    refusal: NullOr(Struct({ object: Text, kind: Literals(["pod", "download", "optional", "other"]), reason: Text, message: Text, since: Finite })),
    startFailure: NullOr(NamedFailure),
    ...capacity,
    hasUncountedPods: Flag.pipe(Schema.withDecodingDefaultKey(Effect.succeed(false))),
    options: List(Struct({ ...capacity, plan: PlanState, podClass: RecordedClass })),
    roomOn: NullOr(Struct({ name: Text, freeGpus: Int, sameStore: Flag })),
    funding: NullOr(Struct({ why: Literals(["balance", "day", "month", "suspended"]), releaseAt: NullOr(Finite) })),
    organizationGpus: Int,
    admission: NullOr(Text),
    predecessorHolds: Flag,
    predecessorPlace: NullOr(Text),
    candidates: List(Struct({ run: DeploymentId, pod: Text, gpus: Int, until: Finite, inPlace: Flag })),
    elsewhere: Flag,
    outdated: Flag,
    budget: Literals(["absent", "intact", "edited"]),
    work: WorkState,
    sameStart: Flag,
    withdrawnAt: NullOr(Finite),
    firstReadings: List(Tuple([Finite, Finite])),
    leadingSince: Finite,
    released: Flag
  })
)

const withoutValues = (podClass: PodClass): PodClass =>
  podClass.env.length === 0 ? podClass : { ...podClass, env: podClass.env.map((variable) => ({ ...variable, value: "" })) }

/** The recorded facts of a revision. They are most of an observation and never change. */
export interface RecordedFacts {
  readonly revision: RevisionId
  readonly facts: RepositoryFacts
}

/** The recorded facts of the run's revision. The same instance as before for the same revision. */
export const factsOf = ({ revision }: Run, before: RecordedFacts | null): RecordedFacts | null => {
  if (revision === null || before?.revision === revision.id) return revision === null ? null : before
  const { facts, id } = revision
  return { revision: id, facts: facts.chat_template === null ? facts : { ...facts, chat_template: "" } }
}

const withoutTexts = (run: Run, known: RecordedFacts | null): Run => ({
  ...run,
  traceparent: null,
  progress: null,
  revision: run.revision === null || known === null ? null : { ...run.revision, facts: known.facts }
})

/** The record of an observation. A JSON value, except that absent members may be `undefined`. */
export const toRecord = ({ bootLog, engine, ...observation }: Observation, facts = factsOf(observation.run, null)): Members => ({
  ...observation,
  run: withoutTexts(observation.run, facts),
  podClass: observation.podClass === null ? null : withoutValues(observation.podClass),
  options: observation.options.map((option): ClassOption => ({ ...option, podClass: withoutValues(option.podClass) })),
  startFailure: bootLog === null ? null : (engine?.bootFailure(bootLog) ?? null),
  firstReadings: [...observation.firstReadings]
})

/** The adapter of the run's engine. It gives the cause that was recorded, because the log was not. */
const restore = ({ firstReadings, startFailure, ...observation }: typeof RecordedObservation.Type): Observation => {
  const runtime = observation.run.revision?.settings.runtime
  const adapter = runtime === undefined ? null : (engineFor(runtime) ?? null)
  return {
    ...observation,
    engine: adapter === null || startFailure === null ? adapter : { ...adapter, bootFailure: () => startFailure },
    bootLog: startFailure === null ? null : "",
    firstReadings: new Map(firstReadings)
  }
}

const decode = Schema.decodeUnknownOption(RecordedObservation)

/** The observation of a record; none if this version cannot read it. */
export const fromRecord = (record: unknown): Option.Option<Observation> => Option.map(decode(record), restore)
