import { engineFor } from "@seatrial/engines"
import { Job, KubeClient } from "@seatrial/kube"
import { Runs } from "@seatrial/store"
import { ReferenceRequest, readReference } from "@seatrial/trial"
import { Effect, Option, Schema } from "effect"
import { type ReferencePlan, referencePlan, requestArgument } from "../objects/referenceJob.ts"
import { referenceContainer, referenceLabel } from "../resources/objectNames.ts"
import type { ActionContext, ActionOf } from "./ActionContext.ts"
import { ignoreNotFound } from "./ignoreNotFound.ts"

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

/** Stores the result that the pod printed, or a code if it printed none. */
const storeResult = Effect.fnUntraced(function* ({ attempt, name }: ReferencePlan, namespace: string, pod: string) {
  const runs = yield* Runs
  const request = yield* requestOf(name, namespace)
  if (Option.isNone(request)) return
  const printed = yield* (yield* KubeClient).podLog(pod, namespace, { container: referenceContainer, tailLines: resultLines })
  yield* readReference(request.value, printed).pipe(
    Effect.flatMap((reference) => runs.addReference(attempt, reference)),
    Effect.catchTags({
      NoReference: ({ code }) => runs.noteMissingReference(attempt, code ?? "unreadable_result"),
      DifferentReference: ({ commit, repo }) => Effect.logError(`${repo}@${commit} has another reference than the operator computed. One of the two is wrong.`)
    })
  )
})

export const removeReference = Effect.fnUntraced(function* (context: ActionContext) {
  const plan = planOf(context)
  if (plan === null) return
  const kube = yield* KubeClient
  yield* ignoreNotFound(kube.remove(Job, plan.name, context.applying.settings.namespace, { propagation: "Background" }))
})

/** The run does not depend on it: an error is logged, and the next pass tries again. */
export const keepReference = Effect.fnUntraced(function* (context: ActionContext, { code, pod }: ActionOf<"KeepReference">) {
  const plan = planOf(context)
  if (plan === null) return
  const { namespace } = context.applying.settings
  const storing =
    code !== null
      ? Effect.flatMap(Runs, (runs) => runs.noteMissingReference(plan.attempt, code))
      : pod === null
        ? Effect.void
        : storeResult(plan, namespace, pod)
  yield* Effect.andThen(ignoreNotFound(storing), removeReference(context)).pipe(
    Effect.catch(({ message }) => Effect.logWarning(`the result of ${plan.name} could not be kept: ${message}`))
  )
})
