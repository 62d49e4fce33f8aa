package house

import (
	"go/types"
	"slices"
)

// Handles returns the handles of a public package: types with the structure of a type of
// another package, such as partition.File, and what programs would see of that structure.
// Methods of the type inside do not come along, fields do.
func Handles(pkg *types.Package) (handles, seen []string) {
	for _, name := range pkg.Scope().Names() {
		obj, ok := pkg.Scope().Lookup(name).(*types.TypeName)
		if !ok || !obj.Exported() || obj.IsAlias() {
			continue
		}
		s, ok := obj.Type().Underlying().(*types.Struct)
		if !ok {
			continue
		}
		inside := false
		for f := range s.Fields() {
			if f.Pkg() == pkg {
				continue
			}
			inside = true
			if f.Exported() || f.Embedded() {
				seen = append(seen, pkg.Name()+"."+name+" has the field "+f.Name())
			}
		}
		if inside {
			handles = append(handles, pkg.Name()+"."+name)
		}
	}
	slices.Sort(handles)
	return handles, seen
}
