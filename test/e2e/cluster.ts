import { Job, KubeClient, type KubeError, layerKubeClient, Pod, Secret } from "@seatrial/kube"
import { deploymentLabel, HostClassResource } from "@seatrial/operator"
import { Config, Context, Effect, Layer, Schedule } from "effect"

/** The Kubernetes API that a kubeconfig names. */
export const openCluster = (kubeconfig: string) =>
  Effect.map(Effect.orDie(Layer.build(layerKubeClient({ kubeconfig: Config.succeed(kubeconfig) }))), (services) => Context.get(services, KubeClient))

const namespace = "seatrial"

/** Makes a request again where the API server is busy or the connection was lost, for a minute; dies of whatever else it fails with. */
export const patiently = <A>(request: Effect.Effect<A, KubeError>): Effect.Effect<A> =>
  Effect.orDie(Effect.retry(request, { while: ({ reason }) => reason === "Retryable", schedule: Schedule.spaced("200 millis"), times: 300 }))

/** What the cluster holds of runs beside their records: `Kind dep_...`, in order. */
export const objectsOfRuns = Effect.fnUntraced(function* (kube: KubeClient["Service"]) {
  const labels = (object: { readonly metadata: { readonly labels?: Readonly<Record<string, string>> | undefined } }) =>
    object.metadata.labels?.[deploymentLabel] ?? "none"
  const pods = yield* patiently(kube.list(Pod, { namespace }))
  const jobs = yield* patiently(kube.list(Job, { namespace }))
  const secrets = yield* patiently(kube.list(Secret, { namespace }))
  return [
    ...pods.map((object) => `Pod ${labels(object)}`),
    ...jobs.map((object) => `Job ${labels(object)}`),
    ...secrets.map((object) => `Secret ${labels(object)}`)
  ].sort()
})

/** Lets the benchmark of a host class take a second only: how fast an engine is, is not what these tests are about. */
export const shortenBenchmark = (kube: KubeClient["Service"], hostClass = "sim-small") =>
  Effect.asVoid(patiently(kube.mergePatch(HostClassResource, hostClass, undefined, { spec: { benchmarkSeconds: 1 } })))
