import { assert, describe, it } from "@effect/vitest"
import { imageDigest } from "../../src/resources/imageDigest.ts"

const digest = `sha256:${"a".repeat(64)}`
const other = `sha256:${"b".repeat(64)}`

describe("the digest of a container's image", () => {
  it.each([
    ["by containerd", "vllm/vllm-openai:v0.33.0", `docker.io/vllm/vllm-openai@${digest}`, digest],
    ["by containerd, of Docker's own", "node:24", `docker.io/library/node@${digest}`, digest],
    ["by CRI-O", "quay.io/vllm/vllm:v1", `quay.io/vllm/vllm@${digest}`, digest],
    ["by cri-dockerd", "vllm/vllm-openai", `docker-pullable://vllm/vllm-openai@${digest}`, digest],
    ["of a registry with a port", "registry.local:5000/engine:1", `registry.local:5000/engine@${digest}`, digest],
    ["by its own name, whatever the node calls it", `quay.io/vllm/vllm@${digest}`, `mirror.example/vllm@${other}`, digest],
    ["is unknown if it was never pulled", "engine:1", digest, null],
    ["is unknown if it was never pulled, with cri-dockerd", "engine:1", `docker://${digest}`, null],
    ["is unknown if the node has it from another repository, because it may differ", "quay.io/vllm/vllm:v1", `docker.io/vllm/vllm@${digest}`, null],
    ["is unknown while the container does not run", "engine:1", "", null],
    ["is unknown without a status", "engine:1", undefined, null]
  ])("is told %s", (_, image, imageId, expected) => {
    assert.strictEqual(imageDigest(image, imageId), expected)
  })
})
