import type { Run } from "@seatrial/store"

type Replacement = (organization: string) => string

/**
 * Texts of the hub's refusals that mention the caller's API key, and their replacements if there is no caller. The
 * first match counts.
 */
const replacements: ReadonlyArray<readonly [pattern: RegExp, replacement: Replacement]> = [
  [/the user whose API key asks has no connection to the hub/gu, (slug) => `the organization ${slug} shares no hub token with applied objects`],
  [/(the) hub token of the user whose API key asks/giu, (slug) => `the hub token that the organization ${slug} shares`],
  [
    /to the user whose API key asks/gu,
    (slug) => `to the applied objects of ${slug}, which use the hub token that the organization shares, or no token if it shares none`
  ],
  [
    /connect a new hub token to that user( \(`seatrial admin hub-connections set`\))?/giu,
    (slug) => `connect a new hub token to the user whose token is shared (\`seatrial admin hub-connections set --org ${slug} --email ...\`)`
  ],
  [
    /connect a hub token that may read it to that user( \(`seatrial admin hub-connections set`\))?/giu,
    (slug) =>
      `connect a hub token that may read it to a user and share it (\`seatrial admin hub-connections set --org ${slug} --email ...\`, then \`seatrial admin hub-connections share --org ${slug} --email ...\`)`
  ],
  [
    /connect the token of an account that has it/giu,
    (slug) => `connect and share the token of an account that has it (\`seatrial admin hub-connections set\` and \`share --org ${slug} --email ...\`)`
  ]
]

const likeThe = (said: string, words: string) => (/^\p{Lu}/u.test(said) ? words.charAt(0).toUpperCase() + words.slice(1) : words)

/**
 * Rewrites a refusal of the hub for its audience. The run of an applied object has no user, and its token is the one
 * that the organization shares.
 */
export const forItsReader = ({ orgSlug, startedBy }: Pick<Run, "orgSlug" | "startedBy">, text: string): string =>
  startedBy === null ? replacements.reduce((result, [said, words]) => result.replace(said, (found) => likeThe(found, words(orgSlug))), text) : text
