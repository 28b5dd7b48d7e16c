import type { RepositoryFacts } from "@seatrial/domain"
import { Clock, Duration, Effect } from "effect"
import type { BaseModules } from "./BaseModules.ts"

/** Maximum number of cached repositories, and of characters of their chat templates and file lists in total. */
const maxEntries = 256
const maxCharacters = 16 * 1024 * 1024

/** The cached facts of a commit that holds a model. */
export interface KnownModel {
  readonly facts: RepositoryFacts
  readonly modules: BaseModules
}

interface Entry extends KnownModel {
  /** Whether the header of every weight file was read. */
  readonly isComplete: boolean
  readonly characters: number
  /** Expiry in milliseconds of the clock. */
  readonly until: number
}

/**
 * A cache of the facts of commits, by repository and commit. It does not check permissions: a caller must first prove
 * that the hub lets it read the repository.
 */
export interface FactsCache {
  /** `whole`: only if every header was read. */
  readonly find: (repo: string, commit: string, isComplete: boolean) => Effect.Effect<KnownModel | null>
  readonly keep: (known: KnownModel, isComplete: boolean) => Effect.Effect<void>
}

export const makeFactsCache = (remember: Duration.Duration): FactsCache => {
  // Least recently used first.
  const entries = new Map<string, Entry>()
  let characters = 0
  const keyOf = (repo: string, commit: string) => `${repo.toLowerCase()}@${commit}`

  const drop = (key: string) => {
    characters -= entries.get(key)?.characters ?? 0
    entries.delete(key)
  }

  return {
    find: (repo, commit, isComplete) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        const key = keyOf(repo, commit)
        const entry = entries.get(key)
        if (entry === undefined) return null
        if (entry.until <= now) drop(key)
        if (entry.until <= now || (isComplete && !entry.isComplete)) return null
        entries.delete(key)
        entries.set(key, entry)
        return entry
      }),
    keep: ({ facts, modules }, isComplete) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        const key = keyOf(facts.repo, facts.commit)
        drop(key)
        const size = (facts.chat_template?.length ?? 0) + facts.files.length * 250 + modules.characters + 2_000
        entries.set(key, { facts, modules, isComplete: isComplete, characters: size, until: now + Duration.toMillis(remember) })
        characters += size
        for (const oldest of entries.keys()) {
          if (entries.size <= maxEntries && characters <= maxCharacters) break
          drop(oldest)
        }
      })
  }
}
