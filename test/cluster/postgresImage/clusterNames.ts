import dns from "node:dns"

// What a cluster's DNS does for the pods' programs: CLUSTER_NAMES is `name=address`, and that name has that address.
const [name = "", address = ""] = (process.env.CLUSTER_NAMES ?? "").split("=")
const lookup = dns.lookup
const resolved = (host: string, ...rest: ReadonlyArray<unknown>) => {
  const callback = rest.at(-1)
  const [options] = rest
  if (host !== name || typeof callback !== "function") return Reflect.apply(lookup, dns, [host, ...rest])
  const all = typeof options === "object" && options !== null && "all" in options && options.all === true
  process.nextTick(() => (all ? callback(null, [{ address, family: 4 }]) : callback(null, address, 4)))
}
Object.assign(dns, { lookup: resolved })
