import { engineFor } from "@seatrial/engines"
import { Job, KubeClient } from "@seatrial/kube"
import { Runs } from "@seatrial/store"
import { ReferenceRequest, readReference } from "@seatrial/trial"
import { Effect, Option, Schema } from "effect"
import { Action } from "../decide/Decision.ts"
import { referenceMissing } from "../decide/reference.ts"
import { operatorMetrics } from "../metrics.ts"
import { type ReferencePlan, referencePlan, requestArgument } from "../objects/referenceJob.ts"
import { referenceContainer, referenceLabel } from "../resources/objectNames.ts"
import type { ActionContext, ActionOf } from "./ActionContext.ts"
import { ignoreNotFound, isStale } from "./ignoreNotFound.ts"
import { recordWarning } from "./resourceActions.ts"

/** The result is one line. Libraries may write some after it. */
const resultLines = 20

const planOf = ({
  gathered: {
    podClass,
    run: { revision }
  }
}: ActionContext): ReferencePlan | null => {
  const engine = revision === null ? undefined : engineFor(revision.settings.runtime)
  return revision === null || podClass === null || engine === undefined ? null : referencePlan(revision, podClass, engine)
}

const JobArguments = Schema.Struct({
  spec: Schema.Struct({ template: Schema.Struct({ spec: Schema.Struct({ containers: Schema.Array(Schema.Struct({ args: Schema.Array(Schema.String) })) }) }) })
})
const decodeArguments = Schema.decodeUnknownOption(JobArguments)
const decodeRequest = Schema.decodeUnknownOption(Schema.fromJsonString(ReferenceRequest))

/** The request that the Job was created with; none if it is gone. The template of a Job cannot be changed. */
const requestOf = Effect.fnUntraced(function* (name: string, namespace: string) {
  const jobs = yield* (yield* KubeClient).list(Job, { namespace, labelSelector: `${referenceLabel}=${name}` })
  const job = jobs.find(({ metadata }) => metadata.name === name)
  const args = Option.getOrUndefined(decodeArguments(job))?.spec.template.spec.containers.flatMap((container) => container.args) ?? []
  return decodeRequest(args.find((each) => each.startsWith(requestArgument))?.slice(requestArgument.length))
})

/** How a Job has ended. `isNew`: whether no other run has stored that. */
interface Outcome {
  readonly code: string | null
  readonly isNew: boolean
}

const storeCause = Effect.fnUntraced(function* ({ attempt }: ReferencePlan, code: string): Effect.fn.Return<Outcome, never, Runs> {
  return { code, isNew: yield* (yield* Runs).noteMissingReference(attempt, code) }
})

/** Stores the result that the pod printed, or a code if it printed none. */
const storeResult = Effect.fnUntraced(function* (plan: ReferencePlan, namespace: string, pod: string) {
  const { attempt, name } = plan
  const runs = yield* Runs
  const request = yield* requestOf(name, namespace)
  if (Option.isNone(request)) return null
  const printed = yield* (yield* KubeClient).podLog(pod, namespace, { container: referenceContainer, tailLines: resultLines })
  return yield* readReference(request.value, printed).pipe(
    Effect.flatMap((reference) => runs.addReference(attempt, reference)),
    Effect.map((isNew): Outcome => ({ code: null, isNew })),
    Effect.catchTags({
      NoReference: ({ code }) => storeCause(plan, code ?? "unreadable_result"),
      DifferentReference: ({ commit, repo }) =>
        Effect.as(Effect.logError(`${repo}@${commit} has another reference than the operator computed. One of the two is wrong.`), null)
    })
  )
})

const removeJob = Effect.fnUntraced(function* (name: string, namespace: string) {
  yield* ignoreNotFound((yield* KubeClient).remove(Job, name, namespace, { propagation: "Background" }))
})

/** Warns a run that used the Job that there is no result. */
const warn = Effect.fnUntraced(function* (context: ActionContext, { attempt: { commit, repo } }: ReferencePlan, code: string) {
  const message = `The reference of ${repo}@${commit} could not be computed: ${code}. The trials of the commit go on without it. A cluster administrator can let the next trial try again (seatrial admin references forget).`
  yield* recordWarning(context, Action.RecordEvent({ reason: referenceMissing, about: code, message }))
})

/** The run does not depend on it: an error is logged, and the next pass tries again. */
export const keepReference = Effect.fnUntraced(function* (context: ActionContext, { code, pod }: ActionOf<"KeepReference">) {
  const plan = planOf(context)
  if (plan === null) return
  const { namespace } = context.applying.settings
  const storing = code !== null ? storeCause(plan, code) : pod === null ? Effect.succeed(null) : storeResult(plan, namespace, pod)
  yield* Effect.gen(function* () {
    const outcome = yield* Effect.catchIf(storing, isStale, () => Effect.succeed(null))
    if (outcome?.isNew === true) yield* operatorMetrics.references.update({ outcome: outcome.code ?? "computed" }, 1)
    yield* removeJob(plan.name, namespace)
    if (outcome !== null && outcome.code !== null) yield* warn(context, plan, outcome.code)
  }).pipe(Effect.catch(({ message }) => Effect.logWarning(`the result of ${plan.name} could not be kept: ${message}`)))
})
