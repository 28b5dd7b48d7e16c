/**
 * `version`: raised by any change of a prompt, parameter, threshold or hashed byte. `textsSince`: the version that
 * introduced the current texts of `text_likelihood`.
 */
export const suite = { name: "seatrial-core", version: 21, textsSince: 1 } as const
