/** SQL of the serving settings of a model that a create leaves out: those that serve, or else those of its last run. `model`: the alias of its row. */
export const previousSettings = (model: string): string => `coalesce(
  (SELECT r.settings FROM revisions r WHERE r.org_id = ${model}.org_id AND r.id = ${model}.active_revision_id),
  (SELECT coalesce(r.settings, d.serving) FROM deployments d LEFT JOIN revisions r ON r.org_id = d.org_id AND r.id = d.revision_id
    WHERE d.org_id = ${model}.org_id AND d.model_id = ${model}.id ORDER BY d.created_at DESC, d.id DESC LIMIT 1),
  '{}'::jsonb)`
