import { assert, describe, it } from "@effect/vitest"
import { engineFor } from "@seatrial/engines"
import { manifestSha256 } from "@seatrial/hub"
import { Pod } from "@seatrial/kube"
import { Schema } from "effect"
import { decide } from "../../src/decide/decide.ts"
import { observeMerge } from "../../src/gather/observeMerge.ts"
import { enginePod } from "../../src/objects/enginePod.ts"
import type { PodClass } from "../../src/resources/PodClass.ts"
import { weightsArguments, weightsManifest, weightsPath, weightsSize } from "../../src/resources/weightFiles.ts"
import { adapted, baseCommit, baseFiles, files } from "../adapted.ts"
import { words } from "../decide/words.ts"
import { commit, observationOf, pod, podClass, revision, run } from "../observations.ts"

describe("a revision with an adapter", () => {
  it("downloads the base's files and its own, each under its own commit, and starts an engine with both", () => {
    assert.deepStrictEqual(weightsArguments(adapted, "/weights"), [
      "--repo=seatrial/tiny-chat",
      `--commit=${baseCommit}`,
      `--directory=/weights/seatrial/tiny-chat/${baseCommit}`,
      `--manifest=${manifestSha256(baseFiles)}`,
      "--adapter-repo=acme/tuned",
      `--adapter-commit=${commit}`,
      `--adapter-directory=/weights/acme/tuned/${commit}`,
      `--adapter-manifest=${manifestSha256(files)}`
    ])
    assert.strictEqual(weightsSize(adapted), 2 ** 20 + 1_000)
    const engine = engineFor("reference") ?? assert.fail()
    const settings = { fetchImage: "seatrial:1", namespace: "seatrial", pullSecrets: [] }
    const pod = enginePod({ run, revision: adapted, podClass, engine, settings, weightsClaim: "weights" })
    const args: ReadonlyArray<string> = JSON.parse(JSON.stringify(pod)).spec.containers[0].args
    assert.includeMembers(
      [...args],
      [`--model=/models/seatrial/tiny-chat/${baseCommit}`, `--lora-modules=adapter=/models/acme/tuned/${commit}`, "--enable-lora"]
    )
  })

  it("may have a model with the name that engines use for every adapter: the base is then served under another name", () => {
    const settings = { fetchImage: "seatrial:1", namespace: "seatrial", pullSecrets: [] }
    for (const runtime of ["vllm", "sglang", "reference"] as const) {
      const engine = engineFor(runtime) ?? assert.fail()
      const names = (model: string, merged: boolean) => {
        const pod = enginePod({ run: { ...run, model }, revision: adapted, podClass, engine, settings, weightsClaim: "weights", merged })
        const args: ReadonlyArray<string> = JSON.parse(JSON.stringify(pod)).spec.containers[0].args
        const at = args.findIndex((word) => word.startsWith("--served-model-name"))
        const [, first = ""] = args[at]?.split("=") ?? []
        const rest = args.slice(at + 1)
        const otherArguments = rest.slice(
          0,
          rest.findIndex((word) => word.startsWith("--"))
        )
        return first === "" ? otherArguments : first.split(",")
      }
      for (const model of ["adapter", `${run.orgSlug}/adapter`]) {
        assert.notInclude(names(model, false), "adapter", `${runtime} ${model}`)
        assert.isNotEmpty(names(model, false))
        assert.isTrue(
          names(model, true).some((name) => name === model),
          `${runtime} ${model}`
        )
      }
    }
  })

  it("is compared with the merged model, in a pod of the same name: merged from verified weights before the engine starts, into a volume of that pod", () => {
    const engine = engineFor("reference") ?? assert.fail()
    const settings = { fetchImage: "seatrial:1", namespace: "seatrial", pullSecrets: [] }
    const podOf = (merged: boolean, change: Partial<PodClass> = {}) =>
      JSON.parse(JSON.stringify(enginePod({ run, revision: adapted, podClass: { ...podClass, ...change }, engine, settings, weightsClaim: "weights", merged })))
    const [own, merged] = [podOf(false), podOf(true)]
    assert.strictEqual(merged.metadata.name, own.metadata.name)
    assert.deepStrictEqual(merged.metadata.labels, own.metadata.labels)
    const names = (pod: { spec: { initContainers: ReadonlyArray<{ name: string }> } }) => pod.spec.initContainers.map(({ name }) => name)
    assert.deepStrictEqual([names(own), names(merged)], [["check-weights"], ["check-weights", "merge-weights"]])
    assert.deepStrictEqual(merged.spec.initContainers[1].args, [
      `--base=/models/seatrial/tiny-chat/${baseCommit}`,
      `--adapter=/models/acme/tuned/${commit}`,
      "--target=/merged/model",
      "--replace"
    ])
    const folders = [`seatrial/tiny-chat/${baseCommit}`, `acme/tuned/${commit}`]
    for (const weightsCache of [null, { claimName: "node-weights", sizeBytes: null, storageClassName: null, verify: "full" } as const]) {
      assert.deepStrictEqual(podOf(true, { weightsCache }).spec.initContainers[1].volumeMounts, [
        ...folders.map((folder) => ({ name: "weights", mountPath: `/models/${folder}`, subPath: folder, readOnly: true })),
        { name: "merged", mountPath: "/merged" }
      ])
    }
    const [container] = merged.spec.containers
    assert.include(container.args, "--model=/merged/model")
    assert.notInclude(container.args.join(" "), "lora")
    assert.deepStrictEqual(
      container.volumeMounts.find(({ name }: { name: string }) => name === "merged"),
      { name: "merged", mountPath: "/merged", readOnly: true }
    )
    const volumeOf = (pod: { spec: { volumes: ReadonlyArray<{ name: string }> } }) => pod.spec.volumes.find(({ name }) => name === "merged")
    assert.deepStrictEqual(volumeOf(merged), Object({ name: "merged", emptyDir: {} }))
    assert.isUndefined(volumeOf(own))
    // Class with separate disks for copies of weights; the merged model uses the same kind.
    const cache = { claimName: null, sizeBytes: 2 ** 30, storageClassName: "fast", verify: "full" } as const
    assert.nestedPropertyVal(volumeOf(podOf(true, { weightsCache: cache })), "ephemeral.volumeClaimTemplate.spec.storageClassName", "fast")
  })

  it("fails at once if the merge is not of base and adapter, and after three attempts if the merge failed otherwise", () => {
    const podOf = enginePod({
      run,
      revision: adapted,
      podClass,
      engine: engineFor("reference") ?? assert.fail(),
      settings: { fetchImage: "seatrial:1", namespace: "seatrial", pullSecrets: [] },
      weightsClaim: "weights",
      merged: true
    })
    const decided = (exitCode: number) => {
      const terminated = { exitCode, message: exitCode === 3 ? "fidelity_failed: The merged weights do not match this base and adapter: 12.449%.\n" : "" }
      const status = { initContainerStatuses: [{ name: "merge-weights", ready: false, restartCount: 0, state: { terminated } }] }
      const merge = observeMerge(Schema.decodeUnknownSync(Pod.schema)({ ...JSON.parse(JSON.stringify(podOf)), status }))
      const unstarted = { ...pod, ready: false, started: false, startedAt: null, merge }
      return words(decide(observationOf("provisioning", { pod: unstarted, merged: "wanted" }, { revision: adapted }), 0))
    }
    assert.deepStrictEqual([decided(3), decided(1)], ["keep log, enter failed fidelity_failed", ""])
  })

  it("counts as stored only if both lists of files are unchanged; the same adapter with another base does not count", () => {
    const other = {
      ...adapted,
      facts: { ...adapted.facts, adapter: { ...(adapted.facts.adapter ?? assert.fail()), base: { repo: "seatrial/tiny-chat", commit, files: baseFiles } } }
    }
    const manifests = [revision, adapted, other].map(weightsManifest)
    assert.strictEqual(new Set(manifests).size, 3)
    assert.strictEqual(manifests[0], manifestSha256(baseFiles))
    assert.strictEqual(weightsPath("/models", revision), `/models/seatrial/tiny-chat/${commit}`)
  })
})
