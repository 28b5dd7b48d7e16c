import type { AdapterFacts, RepositoryFacts } from "./repository.ts"

/** The commits whose files an engine is started with: the model's or its base's first, then the adapter's. */
export const weightCommits = (facts: RepositoryFacts): readonly [AdapterFacts["base"], ...ReadonlyArray<AdapterFacts["base"]>] => {
  const { adapter, commit, files, repo } = facts
  const own = { repo, commit, files }
  return adapter === undefined ? [own] : [adapter.base, own]
}
