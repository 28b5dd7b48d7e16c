import { existsSync, readdirSync } from "node:fs"
import { basename, join } from "node:path"
import { hierarchies, type NodePlace, nodes } from "./places.ts"

const groupsIn = (folder: string): ReadonlyArray<string> =>
  existsSync(folder)
    ? [...readdirSync(folder, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? groupsIn(join(folder, entry.name)) : [])), folder]
    : []

/** All control groups of a node, the deepest first. */
export const groupsOfNode = ({ namespace }: NodePlace): ReadonlyArray<string> => hierarchies().flatMap((hierarchy) => groupsIn(join(hierarchy, namespace)))

/** The control groups of a container, one for each hierarchy; none if it has ended. `id`: its ID without the name of the runtime. */
export const groupsOfContainer = (id: string): ReadonlyArray<string> => nodes.flatMap(groupsOfNode).filter((group) => basename(group) === id)
