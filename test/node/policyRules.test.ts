import { assert, describe, it } from "@effect/vitest"
import type { AddressedPod, NetworkPolicy } from "./PolicyObjects.ts"
import { policyRules } from "./policyRules.ts"

const pod = (name: string, address: string, app: string, namespace = "own"): AddressedPod => ({
  metadata: { name, namespace, labels: { app } },
  spec: { containers: [{ ports: [{ name: "web", containerPort: 8_080 }] }] },
  status: { phase: "Running", podIP: address }
})
const pods = [pod("a", "10.0.0.1", "a"), pod("b", "10.0.0.2", "b"), pod("c", "10.0.0.3", "b", "other")]
const namespaces = ["own", "other"].map((name) => ({ metadata: { name, labels: { team: name } } }))
const policy = (spec: NetworkPolicy["spec"]): NetworkPolicy => ({ metadata: { name: "policy", namespace: "own" }, spec })
const ofA = { podSelector: { matchLabels: { app: "a" } } }

/** The rules of one direction, without those that frame them. */
const chainOf = (direction: "ingress" | "egress", ...policies: ReadonlyArray<NetworkPolicy>) => {
  const lines = policyRules({ pods, namespaces, policies }).split("\n")
  const from = lines.indexOf(`chain ${direction} {`)
  return lines.slice(from + 1, lines.indexOf("}", from))
}
const rejectA = { ingress: "ip daddr { 10.0.0.1 } reject with icmpx admin-prohibited", egress: "ip saddr { 10.0.0.1 } reject with icmpx admin-prohibited" }

describe("rules for network policies", () => {
  it("isolate only the pods that a policy selects, in its directions", () => {
    assert.deepStrictEqual(chainOf("ingress", policy(ofA)), [rejectA.ingress])
    assert.deepStrictEqual(chainOf("egress", policy(ofA)), [])
    assert.deepStrictEqual(chainOf("egress", policy({ ...ofA, policyTypes: ["Egress"] })), [rejectA.egress])
    assert.deepStrictEqual(chainOf("ingress", policy({ ...ofA, policyTypes: ["Egress"] })), [])
    assert.deepStrictEqual(chainOf("ingress", { ...policy(ofA), metadata: { name: "policy", namespace: "other" } }), [])
  })

  it("allow pods of the same namespace, or of the selected namespaces", () => {
    const from = (...peers: NonNullable<NonNullable<NetworkPolicy["spec"]["ingress"]>[number]["from"]>) =>
      chainOf("ingress", policy({ ...ofA, ingress: [{ from: peers }] }))
    const b = { podSelector: { matchLabels: { app: "b" } } }
    assert.deepStrictEqual(from(b), ["ip daddr { 10.0.0.1 } ip saddr { 10.0.0.2 } return", rejectA.ingress])
    const others = { namespaceSelector: { matchExpressions: [{ key: "team", operator: "NotIn", values: ["own"] }] } }
    assert.deepStrictEqual(from({ ...b, ...others }), ["ip daddr { 10.0.0.1 } ip saddr { 10.0.0.3 } return", rejectA.ingress])
    assert.deepStrictEqual(from({ podSelector: { matchLabels: { app: "none" } } }), [rejectA.ingress])
  })

  it("allow ports by number, range and name, and networks of IPv4 without their exceptions", () => {
    const ports = [{ port: 53, protocol: "UDP" }, { port: 8_000, endPort: 8_010 }, { port: "web" }, { port: "none" }]
    const allowed = (match: string) => `ip saddr { 10.0.0.1 } ip daddr 0.0.0.0/0 ip daddr != { 169.254.0.0/16 } ${match} return`
    const to = [{ ipBlock: { cidr: "0.0.0.0/0", except: ["169.254.0.0/16"] } }, { ipBlock: { cidr: "::/0" } }]
    assert.deepStrictEqual(chainOf("egress", policy({ ...ofA, policyTypes: ["Egress"], egress: [{ to, ports }] })), [
      allowed("udp dport { 53 }"),
      allowed("tcp dport 8000-8010"),
      allowed("tcp dport { 8080 }"),
      rejectA.egress
    ])
  })

  it("ignore pods that have ended, have no address or use the network of their node", () => {
    const gone: ReadonlyArray<AddressedPod> = [
      { ...pod("ended", "10.0.0.4", "a"), status: { phase: "Succeeded", podIP: "10.0.0.4" } },
      { ...pod("waiting", "", "a"), status: { phase: "Pending" } },
      { ...pod("host", "10.0.0.5", "a"), spec: { hostNetwork: true, containers: [] } }
    ]
    assert.notInclude(policyRules({ pods: gone, namespaces, policies: [policy(ofA)] }), "10.0.0.")
  })
})
