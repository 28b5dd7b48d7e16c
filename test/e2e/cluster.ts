import { Job, KubeClient, type KubeError, layerKubeClient, Pod, Secret } from "@seatrial/kube"
import { deploymentLabel, HostClassResource } from "@seatrial/operator"
import { Config, Context, Effect, Layer, Schedule } from "effect"

/** The Kubernetes API of a kubeconfig. */
export const openCluster = (kubeconfig: string) =>
  Effect.map(Effect.orDie(Layer.build(layerKubeClient({ kubeconfig: Config.succeed(kubeconfig) }))), (services) => Context.get(services, KubeClient))

const namespace = "seatrial"

/** Retries a request for a minute if the API server is busy or the connection is lost. Dies of any other failure. */
export const patiently = <A>(request: Effect.Effect<A, KubeError>): Effect.Effect<A> =>
  Effect.orDie(Effect.retry(request, { while: ({ reason }) => reason === "Retryable", schedule: Schedule.spaced("200 millis"), times: 300 }))

/** The objects of runs in the cluster as `Kind dep_...`, sorted. */
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

/** Shortens the benchmark of a host class to one second, because these tests do not check the speed of engines. */
export const shortenBenchmark = (kube: KubeClient["Service"], hostClass = "sim-small") =>
  Effect.asVoid(patiently(kube.mergePatch(HostClassResource, hostClass, undefined, { spec: { benchmarkSeconds: 1 } })))
