import type { Namespace } from "@seatrial/kube"
import type { AddressedPod, NetworkPolicy, Peer, PolicyPort, Rule, Selector } from "./PolicyObjects.ts"

/** What policies refer to. */
export interface PolicyWorld {
  readonly pods: ReadonlyArray<AddressedPod>
  readonly namespaces: ReadonlyArray<Namespace>
  readonly policies: ReadonlyArray<NetworkPolicy>
}

interface LivePod {
  readonly namespace: string
  readonly labels: Readonly<Record<string, string>>
  readonly address: string
  readonly spec: AddressedPod["spec"]
}

type Direction = "ingress" | "egress"

const typeOf: Readonly<Record<Direction, string>> = { ingress: "Ingress", egress: "Egress" }

/** The table that holds the rules of a node. */
const table = "inet seatrial_policies"

const matches = ({ matchExpressions = [], matchLabels = {} }: Selector, labels: Readonly<Record<string, string>>): boolean =>
  Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
  matchExpressions.every(({ key, operator, values = [] }) => {
    const value = labels[key]
    if (operator === "Exists") return value !== undefined
    if (operator === "DoesNotExist") return value === undefined
    const isListed = value !== undefined && values.includes(value)
    return operator === "In" ? isListed : !isListed
  })

const setOf = (values: Iterable<string | number>): string => `{ ${[...new Set(values)].join(", ")} }`
const addressesOf = (pods: ReadonlyArray<LivePod>): string => setOf(pods.map(({ address }) => address))

const livePods = (pods: ReadonlyArray<AddressedPod>): ReadonlyArray<LivePod> =>
  pods.flatMap(({ metadata, spec, status }) => {
    const address = status?.podIP
    const hasEnded = status?.phase === "Succeeded" || status?.phase === "Failed"
    if (address === undefined || spec.hostNetwork === true || hasEnded) return []
    return [{ namespace: metadata.namespace ?? "", labels: metadata.labels ?? {}, address, spec }]
  })

/** The numbers of a port: of a named one, those that the target pods give it. */
const numbersOf = (port: number | string, targets: ReadonlyArray<LivePod>): ReadonlyArray<number> =>
  typeof port === "number"
    ? [port]
    : targets.flatMap(({ spec }) =>
        spec.containers.flatMap(({ ports = [] }) => ports.filter(({ name }) => name === port).map(({ containerPort }) => containerPort))
      )

const matchPort = ({ endPort, port, protocol = "TCP" }: PolicyPort, targets: ReadonlyArray<LivePod>): ReadonlyArray<string> => {
  const name = protocol.toLowerCase()
  if (port === undefined) return [`meta l4proto ${name}`]
  if (endPort !== undefined) return [`${name} dport ${port}-${endPort}`]
  const numbers = numbersOf(port, targets)
  return numbers.length === 0 ? [] : [`${name} dport ${setOf(numbers)}`]
}

/** The other ends of a rule, each as a match with the pods that it covers. */
const matchPeers = (peers: ReadonlyArray<Peer> | undefined, field: string, namespace: string, pods: ReadonlyArray<LivePod>, world: PolicyWorld) => {
  if (peers === undefined || peers.length === 0) return [{ match: "", pods }]
  return peers.flatMap(({ ipBlock, namespaceSelector, podSelector }) => {
    if (ipBlock !== undefined) {
      const { cidr, except = [] } = ipBlock
      // The cluster has no addresses of IPv6.
      if (cidr.includes(":")) return []
      return [{ match: [`ip ${field} ${cidr}`, ...(except.length === 0 ? [] : [`ip ${field} != ${setOf(except)}`])].join(" "), pods }]
    }
    const within =
      namespaceSelector === undefined
        ? [namespace]
        : world.namespaces.filter(({ metadata }) => matches(namespaceSelector, metadata.labels ?? {})).map(({ metadata }) => metadata.name)
    const found = pods.filter((pod) => within.includes(pod.namespace) && matches(podSelector ?? {}, pod.labels))
    return found.length === 0 ? [] : [{ match: `ip ${field} ${addressesOf(found)}`, pods: found }]
  })
}

const isIsolated = ({ egress, policyTypes }: NetworkPolicy["spec"], direction: Direction): boolean =>
  (policyTypes ?? ["Ingress", ...(egress === undefined ? [] : ["Egress"])]).includes(typeOf[direction])

interface Subject {
  readonly policy: NetworkPolicy
  readonly own: ReadonlyArray<LivePod>
}

/** What one rule of a policy allows to its own pods. */
const allowRule = ({ own, policy }: Subject, rule: Rule, direction: Direction, pods: ReadonlyArray<LivePod>, world: PolicyWorld) => {
  const [mine, theirs] = direction === "ingress" ? ["daddr", "saddr"] : ["saddr", "daddr"]
  const sides = matchPeers(rule.from ?? rule.to, theirs, policy.metadata.namespace ?? "", pods, world)
  return sides.flatMap((side) => {
    const targets = direction === "ingress" ? own : side.pods
    const { ports = [] } = rule
    const matched = ports.length === 0 ? [""] : ports.flatMap((port) => matchPort(port, targets))
    return matched.map((port) => [`ip ${mine} ${addressesOf(own)}`, side.match, port, "return"].filter((part) => part !== "").join(" "))
  })
}

/** The chain of a direction: what is allowed returns, and everything else of an isolated pod is rejected. */
const chainOf = (direction: Direction, subjects: ReadonlyArray<Subject>, pods: ReadonlyArray<LivePod>, world: PolicyWorld): ReadonlyArray<string> => {
  const isolating = subjects.filter(({ policy }) => isIsolated(policy.spec, direction))
  const allowed = isolating.flatMap((subject) => (subject.policy.spec[direction] ?? []).flatMap((rule) => allowRule(subject, rule, direction, pods, world)))
  const isolated = isolating.flatMap(({ own }) => own)
  const field = direction === "ingress" ? "daddr" : "saddr"
  return [
    `chain ${direction} {`,
    ...allowed,
    ...(isolated.length === 0 ? [] : [`ip ${field} ${addressesOf(isolated)} reject with icmpx admin-prohibited`]),
    "}"
  ]
}

/**
 * The rules of nftables that enforce all policies on a node, as one table that replaces the one before. The same table is right for each node, because it names pods by their
 * addresses. A node reaches its own pods, as with every network plug-in, so that probes work.
 */
export const policyRules = (world: PolicyWorld): string => {
  const pods = livePods(world.pods)
  const subjects = world.policies
    .map((policy) => ({
      policy,
      own: pods.filter(({ labels, namespace }) => namespace === policy.metadata.namespace && matches(policy.spec.podSelector ?? {}, labels))
    }))
    .filter(({ own }) => own.length > 0)
  return [
    `table ${table} { }`,
    `delete table ${table}`,
    `table ${table} {`,
    ...chainOf("ingress", subjects, pods, world),
    ...chainOf("egress", subjects, pods, world),
    "chain forwarded {",
    "type filter hook forward priority filter; policy accept;",
    "ct state established,related accept",
    "jump egress",
    "jump ingress",
    "}",
    // Connections of pods to the node itself.
    "chain arriving {",
    "type filter hook input priority filter; policy accept;",
    "ct state established,related accept",
    "jump egress",
    "}",
    "}",
    ""
  ].join("\n")
}
