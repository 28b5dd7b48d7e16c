import { CustomResourceDefinition, defineResource, KubeClient, objectSchema } from "@seatrial/kube"
import { Effect, Option } from "effect"

/** The definition of `ModelDeployment`: only its metadata. */
const Definition = defineResource({ ...CustomResourceDefinition, schema: objectSchema({}) })
const name = "modeldeployments.seatrial.dev"

/**
 * Whether the definition of `ModelDeployment` is gone or being deleted. The API server deletes all objects of a
 * definition with it. False if the operator may not read definitions, as with an older chart.
 */
export const isDefinitionDeleted = Effect.gen(function* () {
  const kube = yield* KubeClient
  const definition = yield* kube.get(Definition, name)
  return Option.isNone(definition) || definition.value.metadata.deletionTimestamp !== undefined
}).pipe(
  Effect.catchIf(
    ({ reason }) => reason === "Denied",
    () => Effect.succeed(false)
  )
)
