import { Config, Schema } from "effect"
import { type Network, parseNetwork } from "./publicAddress.ts"

const partsOf = (text: string) => (text === "none" ? [] : text.split(",").map((part) => part.trim()))

const Networks = Schema.String.check(
  Schema.makeFilter((text: string) => partsOf(text).every((part) => parseNetwork(part) !== null), {
    expected: "networks in CIDR notation, such as 203.0.113.0/24, separated by commas"
  })
)

/** A setting that lists networks, separated by commas; `none`, the default, is the empty list. */
export const networkSetting = (name: string): Config.Config<ReadonlyArray<Network>> =>
  Config.schema(Networks, name).pipe(
    Config.withDefault("none"),
    Config.map((text) => partsOf(text).flatMap((part) => parseNetwork(part) ?? []))
  )
