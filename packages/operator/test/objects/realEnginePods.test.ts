import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import type { RepositoryFacts } from "@seatrial/domain"
import { type EngineAdapter, engineFor } from "@seatrial/engines"
import { enginePod } from "../../src/objects/enginePod.ts"
import type { HostClassResource } from "../../src/resources/HostClassResource.ts"
import { type PodClass, toPodClass } from "../../src/resources/PodClass.ts"
import { reservedVariables } from "../../src/resources/podRules.ts"
import { adapted } from "../adapted.ts"
import { commit, orgId, podClass, revision, run } from "../observations.ts"

const policy = readFileSync(new URL("../../../../charts/seatrial/templates/networkpolicy.yaml", import.meta.url), "utf8")
const image = { vllm: "vllm/vllm-openai:v0.33.0", sglang: "lmsysorg/sglang:v0.5.23" } as const

const objectOf = (runtime: "vllm" | "sglang", change: Partial<PodClass> = {}) => {
  const engine: EngineAdapter | undefined = engineFor(runtime)
  if (engine === undefined) throw new Error(`there is no ${runtime}`)
  const hostClass = { ...podClass.hostClass, runtimes: [{ runtime, image: image[runtime] }] as const, gpu_count: 2, gpu_pool: "H100", simulated: false }
  const settings = { ...revision.settings, runtime }
  const createdPod = enginePod({
    run,
    revision: { ...revision, settings, engineImage: null },
    podClass: { ...podClass, hostClass, ...change },
    engine,
    settings: { fetchImage: "seatrial:1", namespace: "seatrial", pullSecrets: [] },
    weightsClaim: "weights"
  })
  return JSON.parse(JSON.stringify(createdPod))
}
const podOf = (runtime: "vllm" | "sglang", change: Partial<PodClass> = {}) => objectOf(runtime, change).spec
const variable = (spec: { containers: ReadonlyArray<{ env: ReadonlyArray<{ name: string; value?: string }> }> }, name: string) =>
  spec.containers[0]?.env.findLast((one) => one.name === name)?.value

/** The engine's arguments for the chat template of such a revision. */
const templateOf = (runtime: "vllm" | "sglang", facts: RepositoryFacts, merged = false): ReadonlyArray<string> => {
  const of = { ...revision, settings: { ...revision.settings, runtime }, engineImage: null, facts }
  const settings = { fetchImage: "seatrial:1", namespace: "seatrial", pullSecrets: [] }
  const hostClass = { ...podClass.hostClass, runtimes: [{ runtime, image: image[runtime] }] as const, simulated: false }
  const engine = engineFor(runtime) ?? assert.fail()
  const createdPod = JSON.parse(
    JSON.stringify(enginePod({ run, revision: of, podClass: { ...podClass, hostClass }, engine, settings, weightsClaim: "weights", merged }))
  )
  return createdPod.spec.containers[0].args.filter((word: string) => /^--(hf-)?chat-template/.test(word))
}

describe("a model with another chat template for requests with tools", () => {
  const { adapter, ...base } = adapted.facts
  const several = { ...base, chat_template: "{{ '$(x)' }}", other_template: true }

  it("is served with the pinned template, with vLLM by its text and with SGLang by its name", () => {
    assert.deepStrictEqual(templateOf("vllm", several), ["--chat-template={{ '$$(x)' }}"])
    assert.deepStrictEqual(templateOf("sglang", several), ["--hf-chat-template-name=default"])
    assert.deepStrictEqual(templateOf("vllm", base), [])
  })

  it("is served the same way with an adapter, unless the adapter has its own", () => {
    const adapterFacts = adapter ?? assert.fail()
    const own = { ...several, adapter: { ...adapterFacts, template: "file" as const } }
    assert.deepStrictEqual(templateOf("vllm", { ...several, adapter: adapterFacts }), ["--chat-template={{ '$$(x)' }}"])
    assert.deepStrictEqual(templateOf("vllm", own), [`--chat-template=/models/acme/tuned/${commit}/chat_template.jinja`])
    assert.deepStrictEqual(templateOf("vllm", own, true), ["--chat-template={{ '$$(x)' }}"])
  })
})

for (const runtime of ["vllm", "sglang"] as const) {
  describe(`the pod of ${runtime}`, () => {
    it("runs its image with the command that all its tags have, never with the image's entry point", () => {
      const [container] = podOf(runtime).containers
      assert.strictEqual(container.image, image[runtime])
      assert.deepStrictEqual(container.command, runtime === "vllm" ? ["vllm", "serve"] : ["python3", "-m", "sglang.launch_server"])
    })

    it("sets no variable that a host class could set differently", () => {
      const names: ReadonlyArray<string> = podOf(runtime).containers[0].env.map(({ name }: { name: string }) => name)
      for (const name of names) assert.include(reservedVariables, name)
    })

    it("has probes that fit the engine: startup until the operator's deadline, readiness with a request that costs nothing", () => {
      const [{ livenessProbe, ports, readinessProbe, startupProbe }] = podOf(runtime).containers
      // The only port that the chart's network policy opens, for the gateway and the operator.
      const port = Number(/seatrial\.dev\/role: engine[\s\S]*?- port: (\d+)/.exec(policy)?.[1])
      assert.deepStrictEqual(ports, [{ name: "http", containerPort: port, protocol: "TCP" }])
      assert.deepStrictEqual(startupProbe.httpGet, { path: "/health", port })
      assert.deepStrictEqual(readinessProbe.httpGet, { path: runtime === "vllm" ? "/v1/models" : "/ready", port })
      assert.isAbove(startupProbe.periodSeconds * startupProbe.failureThreshold, podClass.bootDeadlineSeconds)
      if (runtime === "sglang") {
        assert.isAtLeast(startupProbe.timeoutSeconds, 25)
        assert.isAtLeast(startupProbe.periodSeconds, 10)
      }
      // The engine's own limit is longer.
      const limit = variable(podOf(runtime), runtime === "vllm" ? "VLLM_ENGINE_READY_TIMEOUT_S" : "SGLANG_WARMUP_TIMEOUT")
      assert.isAtLeast(Number(limit), podClass.bootDeadlineSeconds)
      // Neither health endpoint detects a hang.
      assert.property(livenessProbe, "tcpSocket")
    })

    it("accepts connections only from gateway and operator, and opens none itself", () => {
      const ofEngines = policy.split("\n---\n").find((part) => part.includes("}}-engines\n")) ?? ""
      const selected = /podSelector:\n {4}matchLabels:\n((?: {6}\S.*\n)+)/.exec(ofEngines)?.[1] ?? ""
      const labels = [...selected.matchAll(/^ {6}([a-z./-]+): (\S+)$/gm)].map(([, name = "", value]) => [name, value])
      assert.isNotEmpty(labels)
      assert.deepInclude(objectOf(runtime).metadata.labels, Object.fromEntries(labels))
      assert.deepStrictEqual(
        [...ofEngines.matchAll(/include "seatrial\.selector" \(list \. "([a-z]+)"\)/g)].map(([, who]) => who),
        ["gateway", "operator"]
      )
      assert.match(ofEngines, /policyTypes: \[Ingress, Egress\]/)
      assert.notMatch(ofEngines, /\begress:|ipBlock|namespaceSelector/)
      assert.lengthOf(ofEngines.match(/- from:/g) ?? [], 1)
    })

    it("is restarted whatever its exit code is, because a crash may exit with 0", () => assert.strictEqual(podOf(runtime).restartPolicy, "Always"))

    it("never loads weights if an engine would import a model.py, and cannot write to them", () => {
      const mounts: ReadonlyArray<{ mountPath: string; name: string; readOnly?: boolean }> = podOf(runtime).containers[0].volumeMounts
      assert.isFalse(mounts.some(({ mountPath }) => mountPath.startsWith("/opt/ml")))
      assert.isTrue(mounts.find(({ name }) => name === "weights")?.readOnly)
    })

    it("has shared memory for several GPUs, counted as its memory", () => {
      const spec = {
        runtimes: [{ runtime, image: image[runtime] }],
        gpuPool: "H100",
        gpuCount: 2,
        gpuMemoryBytes: 2 ** 36,
        pricePerGpuHour: "1"
      } satisfies Partial<HostClassResource["spec"]>
      const parsedClass = toPodClass({
        apiVersion: "seatrial.dev/v1alpha1",
        kind: "HostClass",
        metadata: { name: "h100" },
        spec: { ...spec, runtimes: [spec.runtimes[0] ?? { runtime, image: "" }] }
      })
      const bytes = parsedClass._tag === "Some" ? parsedClass.value.sharedMemoryBytes : 0
      assert.isTrue(bytes >= 2 * 2 ** 30 && bytes <= 8 * 2 ** 30)
      assert.deepInclude(podOf(runtime, { sharedMemoryBytes: bytes }).volumes, { name: "shm", emptyDir: { medium: "Memory", sizeLimit: String(bytes) } })
    })

    it("runs as a user that its image can name, with caches in its own folders", () => {
      const spec = podOf(runtime)
      assert.deepInclude(spec.securityContext, { runAsNonRoot: true, runAsUser: 2000, runAsGroup: runtime === "vllm" ? 0 : 2000 })
      for (const name of ["USER", "HOME", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", runtime === "vllm" ? "VLLM_CACHE_ROOT" : "SGLANG_CACHE_DIR"]) {
        assert.isNotEmpty(variable(spec, name) ?? "", name)
      }
      const root = podOf(runtime, { podSecurity: { runAsRoot: true, writableRoot: true, addCapabilities: [] } })
      assert.deepInclude(root.securityContext, { runAsUser: 0, runAsGroup: 0 })
    })

    it("shares compiled code with no other organization, image, GPU type or commit", () => {
      const spec = podOf(runtime, { compileCache: { claimName: "kernels", sizeBytes: null, requestBytes: null } })
      const cache = spec.containers[0].volumeMounts.find(({ name }: { name: string }) => name === "cache")
      assert.strictEqual(cache.subPath, [orgId, image[runtime].replaceAll(/[/:]/g, "-"), "H100", commit].join("/"))
      assert.match(variable(spec, runtime === "vllm" ? "VLLM_CACHE_ROOT" : "SGLANG_CACHE_DIR") ?? "", /^\/cache\//)
    })

    it("bounds the memory for the log-probabilities of prompts, and lets no variable of a host class change it", () => {
      assert.strictEqual(variable(podOf(runtime), "SGLANG_LOGPROB_CHUNK_SIZE"), runtime === "sglang" ? "256" : undefined)
      assert.includeMembers([...reservedVariables], ["SGLANG_LOGPROB_CHUNK_SIZE", "SGLANG_ENABLE_LOGPROB_CHUNK", "VLLM_USE_V2_MODEL_RUNNER"])
    })

    it("is offline, without links to Services, tokens or development switches", () => {
      const spec = podOf(runtime)
      assert.deepInclude(spec, { enableServiceLinks: false, automountServiceAccountToken: false })
      assert.strictEqual(variable(spec, "HF_HUB_OFFLINE"), "1")
      for (const name of ["VLLM_SERVER_DEV_MODE", "VLLM_USE_RUST_FRONTEND", "EXA_API_KEY", "SGLANG_RUST_SERVER", "VLLM_ALLOW_LONG_MAX_MODEL_LEN"]) {
        assert.isUndefined(variable(spec, name), name)
      }
    })

    it("loses its endpoint before it is terminated, and has time to finish its requests", () => {
      const spec = podOf(runtime, { drainSeconds: 30 })
      const [{ args, lifecycle }] = spec.containers
      assert.deepStrictEqual(lifecycle, { preStop: { sleep: { seconds: 30 } } })
      const own = Number(args.find((word: string) => word.startsWith("--shutdown-timeout="))?.split("=")[1] ?? 0)
      assert.isBelow(own, spec.terminationGracePeriodSeconds - 30)
      assert.strictEqual(own > 0, runtime === "vllm")
    })
  })
}
