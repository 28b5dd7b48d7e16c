import { assert, describe, it } from "@effect/vitest"
import { proxyFor } from "../src/proxy.ts"
import { permitRedirect } from "../src/redirects.ts"

const hub = new URL("https://huggingface.co")
const follow = (to: string, from = hub, hosts: ReadonlyArray<string> = []) => {
  try {
    return permitRedirect(from, new URL(to), hosts).lookup === undefined ? "anywhere" : "if it is public"
  } catch {
    return "nowhere"
  }
}

describe("a redirect of the hub", () => {
  it("does not lead into a private network for any form of the address", () => {
    const inside = [
      "10.1.2.3",
      "127.0.0.1",
      "169.254.169.254",
      "172.31.0.1",
      "192.168.1.1",
      "100.64.0.1",
      "0.0.0.0",
      "::1",
      "fd00::1",
      "fe80::1",
      "::ffff:10.0.0.1"
    ]
    for (const address of inside) {
      assert.strictEqual(follow(`https://${address.includes(":") ? `[${address}]` : address}:8443/x`), "nowhere", address)
    }
    assert.strictEqual(follow("https://2130706433/"), "nowhere")
    assert.strictEqual(follow("https://0x7f.1/"), "nowhere")
    for (const host of ["18.155.1.1", "172.32.0.1", "[2606:4700::1]"]) assert.strictEqual(follow(`https://${host}/x`), "anywhere", host)
    assert.strictEqual(follow("https://cdn.example/x"), "if it is public")
    assert.strictEqual(follow("http://cdn.example/x"), "nowhere")
    assert.strictEqual(follow("ftp://cdn.example/x"), "nowhere")
  })

  it("leads to the hub's own host, and to the hosts in the installation's settings", () => {
    const mirror = new URL("http://10.0.0.5:8080")
    assert.strictEqual(follow("http://10.0.0.5:9000/x", mirror), "anywhere")
    assert.strictEqual(follow("http://10.0.0.6:9000/x", mirror), "nowhere")
    assert.strictEqual(follow("http://10.0.0.6:9000/x", mirror, ["10.0.0.6"]), "anywhere")
    assert.strictEqual(follow("https://store.corp.example/x", hub, [".corp.example"]), "anywhere")
    assert.strictEqual(follow("https://evilcorp.example/x", hub, [".corp.example"]), "if it is public")
  })
})

describe("a proxy", () => {
  const of = (url: string, env: Readonly<Record<string, string>>) => proxyFor(new URL(url), { NODE_USE_ENV_PROXY: "1", ...env })?.href ?? null
  it("is used as in Node's own client", () => {
    const both = { HTTPS_PROXY: "http://proxy:3128", HTTP_PROXY: "http://plain:3128" }
    assert.strictEqual(of("https://hub/x", both), "http://proxy:3128/")
    assert.strictEqual(of("http://hub/x", both), "http://plain:3128/")
    assert.strictEqual(of("https://hub/x", { http_proxy: "http://plain:3128" }), "http://plain:3128/")
    assert.isNull(of("https://hub/x", { ...both, NODE_USE_ENV_PROXY: "" }))
    for (const no of ["*", "hub", "other, hub", ".corp,HUB", "hub:443"]) assert.isNull(of("https://hub/x", { ...both, NO_PROXY: no }), no)
    for (const no of ["ub", "hub:80", ""]) assert.isNotNull(of("https://hub/x", { ...both, NO_PROXY: no }), no)
    assert.isNull(of("https://a.corp/x", { ...both, no_proxy: ".corp" }))
  })
})
