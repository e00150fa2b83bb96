// Package compacttest makes the objects of package compact for tests. It is separate, so that product code does not
// import it. It only makes objects that package compact can make.
package compacttest
